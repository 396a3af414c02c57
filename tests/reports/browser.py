"""A headless Chromium, driven by ChromeDriver over HTTP (W3C WebDriver): nothing to install beside both."""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser_here() -> str | None:
    """Return the browser's path, None where it or its driver is absent."""
    return next(filter(None, map(shutil.which, BROWSERS)), None) if shutil.which("chromedriver") else None


class Browser:
    """One session."""

    def __init__(self, driver: str, binary: str, profile: Path) -> None:
        self._driver = driver
        # No sandbox: in a container's root it cannot start.
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
        arguments += ["--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking"]
        chrome = {"binary": binary, "args": arguments}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"

    def open(self, page: Path) -> None:
        self._ask("POST", f"{self._session}/url", {"url": page.resolve().as_uri()})

    def reload(self) -> None:
        self._ask("POST", f"{self._session}/refresh", {})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript, with `return` and `arguments`; a promise is waited for."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command: str, **parameters: Any) -> Any:
        told = {"cmd": command, "params": parameters}
        return self._ask("POST", f"{self._session}/goog/cdp/execute", told)

    def resize(self, width: int, height: int = 900) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def prefer(self, theme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.devtools("Emulation.setEmulatedMedia", media="", features=[feature])

    def press(self, key: str) -> None:
        pressed = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        actions = {"actions": [{"type": "key", "id": "keyboard", "actions": pressed}]}
        self._ask("POST", f"{self._session}/actions", actions)

    def console(self) -> list[str]:
        """Return what the page wrote to the console since the last call."""
        return [entry["message"] for entry in self._ask("POST", f"{self._session}/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", f"{self._session}/screenshot")))

    def pdf(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("POST", f"{self._session}/print", {})))

    def close(self) -> None:
        self._ask("DELETE", self._session)

    def _ask(self, method: str, path: str, content: Any = None) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self._driver + path, data, {"Content-Type": "application/json"})
        request.method = method
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """Start a driver with a browser; both end with the block."""
    binary = browser_here()
    assert binary is not None
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    try:
        told = next(line for line in driver.stdout if "successfully on port" in line)
        port = told.rpartition("port ")[2].strip(" .\n")
        browser = Browser(f"http://127.0.0.1:{port}", binary, profile)
        try:
            yield browser
        finally:
            browser.close()
    finally:
        driver.terminate()
        driver.wait(10)


def wait_for(browser: Browser, script: str, seconds: float = 5) -> Any:
    """Return what a script answers as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (found := browser.run(script)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
