"""The page of our server in a real Chromium: it shows models and drift, and its form predicts what TensorFlow predicts.

    serve_page.py SERVE_EXCHANGE FOLDER
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

import tensorflow as tf

from browser import Browser, CannotStart

N_ROWS = 200


def example(age, job, label):
    feature = {
        "age": tf.train.Feature(float_list=tf.train.FloatList(value=[age])),
        "job": tf.train.Feature(bytes_list=tf.train.BytesList(value=[job])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def evaluate(browser, expression):
    return browser.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")


def wait_for(browser, expression, what):
    end = time.time() + 60
    while time.time() < end:
        if evaluate(browser, expression):
            return
        time.sleep(0.1)
    print(browser.text()[:3000])
    raise SystemExit(f"serve_page: {what} did not appear")


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if not shutil.which("chromium"):
        print("serve_page: skipped, there is no chromium")
        return
    records = folder / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(records)) as writer:
        for i in range(N_ROWS):
            writer.write(example(float(20 + i % 50), [b"nurse", b"cook"][i % 2], i % 2))
    subprocess.run([program, "export", str(records), str(folder / "ours")], check=True)
    [export] = [path for path in (folder / "ours").iterdir() if path.name.isdigit()]
    call = tf.saved_model.load(str(export)).signatures["serving_default"]
    expected = call(age=tf.constant([33.5]), job=tf.constant([b"pilot"]))["logits"].numpy()[0, 0]
    server = subprocess.Popen([program, "serve", f"people={folder / 'ours'}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = int(server.stdout.readline().split()[1])
    try:
        browser = Browser(str(folder / "profile"))
    except CannotStart:
        print("serve_page: skipped, chromium does not start here")
        return
    try:
        browser.show(f"http://127.0.0.1:{port}/")
        wait_for(browser, "document.querySelector('section[data-model=people] form') !== null", "the form")
        text = browser.text()
        for part in ("people", "AVAILABLE", export.name, "Try a prediction", "age f32[-1]", "No request has been answered yet."):
            if part not in text:
                raise SystemExit(f"serve_page: {part!r} is not on the page:\n{text[:3000]}")
        evaluate(browser, """(() => {
            document.querySelector('input[name=age]').value = '33.5';
            document.querySelector('input[name=job]').value = 'pilot';
            document.querySelector('form button').click();
        })()""")
        wait_for(browser, "(document.querySelector('.answer') || {hidden: true}).hidden === false", "the answer")
        answer = evaluate(browser, "document.querySelector('.answer').textContent")
        status, body = answer.split("\n", 1)
        body = json.loads(body)
        found = body["predictions"][0]["logits"][0]
        if status != "200" or abs(found - expected) > 1e-5 * max(1, abs(expected)):
            raise SystemExit(f"serve_page: the form gave {answer}; expected {expected}")
        if "job_embedding" not in body["explanations"][0]:
            raise SystemExit(f"serve_page: no explanation: {answer}")
        # The histogram and the counts appear without a reload.
        wait_for(browser, "document.querySelector('.latencies svg rect') !== null", "the histogram")
        wait_for(browser, "[...document.querySelectorAll('td')].some(cell => cell.textContent === 'job')", "drift")
        errors = evaluate(browser, "document.getElementById('problem').textContent")
        if errors:
            raise SystemExit(f"serve_page: {errors}")
        browser.picture(str(folder / "page.png"))
        print("serve_page: the page shows the model, and its form predicts what TensorFlow does")
    finally:
        browser.close()
        server.stdin.close()
        server.wait(timeout=60)


main()
