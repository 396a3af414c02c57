"""A headless Chromium, driven by ChromeDriver over HTTP (W3C WebDriver): nothing to install beside both."""

import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

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


@contextmanager
def browser_or_skip(profile: Path) -> Iterator[Browser]:
    """Start a browser, or skip the test where there is none."""
    if browser_here() is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    with started(profile) as browser:
        yield browser


def wait_for(browser: Browser, script: str, seconds: float = 5) -> Any:
    """Return what a script answers as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (found := browser.run(script)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


CONTRAST = """
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const channels = (colour) => {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (colour) => {
      const [r, g, b] = channels(colour).map((value) => value / 255)
        .map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (channels(colour)[3] === 255) return colour;
      }
      return 'white';
    };
    const poor = [];
    for (const element of document.querySelectorAll('body *:not(script)')) {
      if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
      const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) poor.push([element.className, element.textContent.slice(0, 40), ratio]);
    }
    return poor;
"""


def has_contrast(browser: Browser) -> None:
    """Every text has the contrast of WCAG 2.1, level AA: 4.5, in both themes."""
    for theme in ("light", "dark"):
        browser.prefer(theme)
        assert browser.run(CONTRAST) == []


def passes_axe(browser: Browser) -> None:
    """Run axe-core: the `axe.min.js` that STSBENCH_AXE names, or the one of the package axe-core-python."""
    path = os.environ.get("STSBENCH_AXE")
    if (package := find_spec("axe_core_python")) and package.origin and not path:
        path = str(Path(package.origin).with_name("axe.min.js"))
    if not path:
        return
    browser.run(f"{Path(path).read_text(encoding='utf-8')}\nwindow.axe = axe;")
    # Colours are all that the theme changes; what passes is not to be told.
    for theme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        browser.prefer(theme)
        violations = "found.violations.map((one) => [one.id, one.nodes[0].html])"
        script = f"return axe.run(arguments[0]).then((found) => {violations})"
        found = browser.run(script, {"resultTypes": ["violations"], **rules})
        assert found == [], json.dumps(found)
