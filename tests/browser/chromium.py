"""A headless Chromium for tests, driven over its own DevTools socket: JSON there and back, nothing more.

aiohttp comes with PyG; without it, or without Chromium, the tests that need a browser are skipped with a sentence.
"""

import asyncio
import base64
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def browser():
    """The program, or a skip that says how to get it."""
    pytest.importorskip("aiohttp", reason="the browser test talks to Chromium through aiohttp, which comes with PyG")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here, so the page was not opened in a browser: apt-get install chromium")
    return found


class Tab:
    """One page in a fresh browser; events that arrive between answers are kept."""

    def __init__(self, width=1200, height=900, dark=False):
        self.size, self.dark = (width, height), dark
        self.events, self.count = [], 0

    def __enter__(self):
        import aiohttp

        self.loop = asyncio.new_event_loop()
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [
                browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--remote-debugging-port=0", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
                "--disable-extensions", f"--user-data-dir={self.profile.name}", "about:blank",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            self.session, self.socket = self._wait(self._connect(aiohttp))
            for domain in ("Page", "Runtime", "Network", "Log"):
                self(f"{domain}.enable")
            self.look(self.size[0], self.dark)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *problem):
        if hasattr(self, "socket"):
            self._wait(self.socket.close())
            self._wait(self.session.close())
        self.process.terminate()
        self.process.wait(timeout=20)
        self.loop.close()
        self.profile.cleanup()

    def __call__(self, method, **parameters):
        """Send a command and wait for its answer."""
        self.count += 1
        return self._wait(self._ask(self.count, method, parameters))

    def look(self, width, dark):
        """Set the width of the window and the reader's choice of colours."""
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=self.size[1],
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, file):
        """Load a file, and wait for its load event."""
        began = time.monotonic()
        self("Page.navigate", url=Path(file).resolve().as_uri())
        while self.run("document.readyState") != "complete" or self.run("location.protocol") != "file:":
            assert time.monotonic() - began < 60, "the page does not load"
            time.sleep(0.01)

    def run(self, script):
        """The value of an expression on the page."""
        found = self("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key, code=0, text=""):
        """A real key, down and up."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        more = {"text": text} if text else {}
        self("Input.dispatchKeyEvent", type="keyDown", **common, **more)
        self("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, script):
        """A real click into the middle of the element that an expression gives."""
        where = f"(e => {{ e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})({script})"
        x, y = self.run(where)
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, file, whole=False):
        """A screenshot, of what is seen or of the whole page."""
        data = self("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        Path(file).write_bytes(base64.b64decode(data))

    def told(self, *kinds):
        """The events of these kinds so far."""
        return [e for e in self.events if e["method"] in kinds]

    def _wait(self, work):
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    async def _connect(self, aiohttp):
        port = Path(self.profile.name) / "DevToolsActivePort"
        while not port.is_file() or len(port.read_text().split()) < 2:
            assert self.process.poll() is None, "Chromium ended at once"
            await asyncio.sleep(0.05)
        session = aiohttp.ClientSession()
        base = f"http://127.0.0.1:{port.read_text().split()[0]}"
        while True:  # the first tab may need a moment longer than the socket
            async with session.get(f"{base}/json/list") as answer:
                pages = [t for t in await answer.json() if t["type"] == "page"]
            if pages:
                return session, await session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
            await asyncio.sleep(0.05)

    async def _ask(self, number, method, parameters):
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            answer = await self.socket.receive_json()
            if "method" in answer:
                self.events.append(answer)
            elif answer["id"] == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
