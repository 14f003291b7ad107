"""A headless Chromium, driven by its DevTools protocol over a WebSocket: pages are opened, their text is read, pictures are taken.

Only Python's own library: one client, one page, small messages.
"""

import base64
import json
import os
import socket
import struct
import subprocess
import time
import urllib.parse
import urllib.request

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-dev-shm-usage --remote-debugging-port=0 --remote-allow-origins=* --window-size=1400,1000"
).split()

# The text of the page, through the shadow roots in which TensorBoard's components hide it.
TEXT = """(() => {
  const parts = [];
  const walk = node => {
    if (node.nodeType === Node.TEXT_NODE) { parts.push(node.data); return; }
    if (["STYLE", "SCRIPT", "TEMPLATE", "DOM-MODULE"].includes(node.nodeName)) return;
    if (node.shadowRoot) walk(node.shadowRoot);
    if (node.nodeName === "INPUT") parts.push(node.value);
    for (const child of node.childNodes) walk(child);
  };
  walk(document.body);
  return parts.map(part => part.trim()).filter(part => part).join("\\n");
})()"""


class CannotStart(Exception):
    """There is a Chromium, and this machine does not let it run."""


class Browser:
    def __init__(self, profile):
        self.profile = profile
        self.n_calls = 0
        os.makedirs(profile)
        command = ["chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self.port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=20) as reply:
            [page] = [page for page in json.load(reply) if page["type"] == "page"]
        self.connect(page["webSocketDebuggerUrl"])

    def close(self):
        self.process.terminate()
        self.process.wait(20)

    def port(self):
        """Chromium writes the port that it has chosen into its profile."""
        path, end = os.path.join(self.profile, "DevToolsActivePort"), time.time() + 30
        while True:
            if os.path.exists(path) and (lines := open(path).read().split()):
                return int(lines[0])
            if time.time() > end or self.process.poll() is not None:
                self.process.kill()
                raise CannotStart
            time.sleep(0.1)

    def connect(self, url):
        address = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=60)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert b"101" in self.file.readline()
        while self.file.readline().strip():
            pass

    def call(self, method, **params):
        self.n_calls += 1
        data, mask = json.dumps({"id": self.n_calls, "method": method, "params": params}).encode(), os.urandom(4)
        header = struct.pack("!BBH", 0x81, 0x80 | 126, len(data)) + mask
        self.socket.sendall(header + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))
        while True:
            message = json.loads(self.message())
            if message.get("id") == self.n_calls:
                assert "error" not in message, (method, message)
                return message["result"]

    def message(self):
        parts = b""
        while True:
            first, size = self.file.read(2)
            size &= 0x7F
            if size == 126:
                [size] = struct.unpack("!H", self.file.read(2))
            elif size == 127:
                [size] = struct.unpack("!Q", self.file.read(8))
            parts += self.file.read(size)
            if first & 0x80:
                return parts

    def show(self, url):
        # A page that differs in what is behind # alone would not be loaded anew.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def text(self):
        return self.call("Runtime.evaluate", expression=TEXT, returnByValue=True)["result"].get("value", "")

    def wait_for_text(self, expected, seconds=120):
        """The text of the page once it has all of this."""
        end = time.time() + seconds
        while True:
            text = self.text()
            missing = [part for part in expected if part not in text]
            if not missing:
                return text
            assert time.time() < end, f"{missing} is not on the page:\n{text}"
            time.sleep(0.3)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
