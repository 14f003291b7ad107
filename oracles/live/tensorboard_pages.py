"""Starts TensorBoard on model folders of ours and looks at its pages: what its data endpoints say and, where Chromium is installed, what a browser shows.

usage: tensorboard_pages.py EXAMPLE_PROGRAM EMPTY_FOLDER

With a third argument, a folder, screenshots of the pages are kept there.
"""

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import browser
from left_out import left_out

PROGRAM, FOLDER = sys.argv[1:3]
PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
RUNS = ["quick", "quick/eval", "slow", "slow/eval"]
EXPERIMENT_WAIT = 60


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Board:
    """A TensorBoard of its own, which only this machine can ask."""

    def __init__(self, folder):
        self.url = f"http://127.0.0.1:{free_port()}"
        port = self.url.rsplit(":", 1)[1]
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", port, "--load_fast", "false"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, path, body=None, **parameters):
        query = urllib.parse.urlencode(parameters)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/data/{path}?{query}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            content = reply.read()
            return json.loads(content) if "json" in reply.headers["Content-Type"] else content

    def wait(self):
        """Until all runs are there."""
        end = time.time() + EXPERIMENT_WAIT
        while True:
            try:
                if sorted(self.ask("runs")) == RUNS:
                    return
            except OSError:
                pass
            assert time.time() < end and self.process.poll() is None, "TensorBoard does not answer"
            time.sleep(0.2)


def scalars(board):
    tags = board.ask("plugin/scalars/tags")
    training = {"loss", "hidden/mean", "global_step/sec"}
    assert set(tags["quick"]) == training and set(tags["slow/eval"]) == {"loss", "accuracy"}, tags
    steps = [step for _, step, _ in board.ask("plugin/scalars/scalars", run="quick", tag="loss")]
    # Steps 1, 6 and the first of the second call, 11, and 16.
    assert steps == [1, 6, 11, 16], steps
    evaluated = board.ask("plugin/scalars/scalars", run="quick/eval", tag="accuracy")
    assert [step for _, step, _ in evaluated] == [10, 20], evaluated
    return evaluated[-1][2]


def histograms(board):
    assert set(board.ask("plugin/histograms/tags")["quick"]) == {"hidden"}
    found = board.ask("plugin/histograms/histograms", run="quick", tag="hidden")
    for _, step, buckets in found:
        # 8 pictures and 8 hidden units.
        assert sum(count for _, _, count in buckets) == 64, (step, buckets)
        assert min(left for left, _, _ in buckets) >= 0, "the hidden layer ends with a relu"
    assert [step for _, step, _ in found] == [1, 6, 11, 16], found


def images(board):
    tags = board.ask("plugin/images/tags")["slow"]
    assert set(tags) == {f"picture/image/{i}" for i in range(3)}, tags
    shown = board.ask("plugin/images/images", run="slow", tag="picture/image/1", sample=0)
    assert [image["step"] for image in shown] == [1, 6, 11, 16], shown
    png = board.ask("plugin/images/individualImage", **dict(urllib.parse.parse_qsl(shown[0]["query"])))
    assert png.startswith(b"\x89PNG") and struct.unpack("!II", png[16:24]) == (4, 4), png[:24]


def texts(board):
    assert board.ask("plugin/text/tags")["slow"] == ["label"]
    shown = board.ask("plugin/text/text", run="slow", tag="label")
    cells = shown[0]["text"].replace("<p>", "").replace("</p>", "").split("<td>")[1:]
    assert [cell.split("</td>")[0] for cell in cells] == ["0", "1"] * 4, shown[0]


def graph(board):
    info = board.ask("plugin/graphs/info")
    assert info["slow"]["run_graph"], info
    text = board.ask("plugin/graphs/graph", run="slow", large_attrs_key="", limit_attr_size=1024).decode()
    for name in ("picture", "hidden/MatMul", "logits/MatMul", "hidden/kernel"):
        assert f'name: "{name}"' in text, (name, text[:2000])


def hparams(board, accuracy):
    columns = board.ask("plugin/hparams/experiment", body={"experimentName": ""})
    names = {info["name"]: info.get("type") for info in columns["hparamInfos"]}
    assert names == {"learning_rate": "DATA_TYPE_FLOAT64", "hidden_units": "DATA_TYPE_FLOAT64", "optimizer": "DATA_TYPE_STRING"}, names
    metrics = [info["name"] for info in columns["metricInfos"]]
    wanted = {"group": "eval", "tag": "accuracy"}
    assert wanted in metrics, metrics
    question = {
        "startIndex": 0, "sliceSize": 10, "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
        "colParams": [{"metric": wanted}, {"hparam": "learning_rate"}],
    }
    groups = {g["sessions"][0]["name"]: g for g in board.ask("plugin/hparams/session_groups", body=question)["sessionGroups"]}
    assert {name: g["hparams"]["learning_rate"] for name, g in groups.items()} == {"slow": 0.001, "quick": 0.1}, groups
    quick = groups["quick"]
    assert quick["sessions"][0]["status"] == "STATUS_SUCCESS", quick
    [value] = [m["value"] for m in quick["metricValues"] if m["name"] == wanted]
    assert value == accuracy, (value, accuracy)


def pr_curves(board):
    assert set(board.ask("plugin/pr_curves/tags")["quick/eval"]) == {"bright"}
    [first, last] = board.ask("plugin/pr_curves/pr_curves", run="quick/eval", tag="bright")["quick/eval"]
    for curve in (first, last):
        # 20 of 40 pictures are bright; at the threshold 0 all are taken for it. Where none is, the curve ends.
        assert len(curve["thresholds"]) <= 11 and (curve["true_positives"][0], curve["false_positives"][0]) == (20, 20), curve
        assert curve["recall"][0] == 1 and curve["precision"][0] == 0.5, curve
    assert last["step"] == 20, last


PAGES = {
    # Page: what must be on it.
    "scalars": ["loss", "hidden", "accuracy", "global_step/sec"],
    "histograms": ["hidden"],
    "images": ["picture/image/0"],
    "graphs": ["hidden", "logits", "picture"],
    "text": ["label"],
    "hparams": ["learning_rate", "hidden_units", "eval.accuracy", "quick"],
    "pr_curves": ["bright"],
}


def pages(board):
    if not shutil.which("chromium"):
        left_out("the pages of TensorBoard", "there is no Chromium")
        return
    try:
        window = browser.Browser(os.path.join(FOLDER, "profile"))
    except browser.CannotStart:
        left_out("the pages of TensorBoard", "Chromium does not start")
        return
    with contextlib.closing(window):
        for page, expected in PAGES.items():
            window.show(f"{board.url}/#{page}")
            text = window.wait_for_text(expected)
            if PICTURES:
                time.sleep(3)
                window.picture(os.path.join(PICTURES, f"{page}.png"))
            assert "No dashboards are active" not in text and "No scalar data was found" not in text, (page, text)
    print(f"  Chromium shows {', '.join(PAGES)}")


if __name__ == "__main__":
    runs = os.path.join(FOLDER, "runs")
    subprocess.run([PROGRAM, runs], check=True, stderr=subprocess.DEVNULL)
    board = Board(runs)
    try:
        board.wait()
        accuracy = scalars(board)
        histograms(board)
        images(board)
        texts(board)
        graph(board)
        hparams(board, accuracy)
        pr_curves(board)
        print("  TensorBoard's endpoints tell of scalars, histograms, images, texts, the graph, parameters and curves")
        pages(board)
    finally:
        board.process.terminate()
        board.process.wait(20)
