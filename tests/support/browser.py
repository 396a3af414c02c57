"""A headless Chromium, driven by ChromeDriver over HTTP (W3C WebDriver): nothing to install beside both."""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser_here():
    """Return the browser's path, None where it or its driver is absent."""
    return next(filter(None, map(shutil.which, BROWSERS)), None) if shutil.which("chromedriver") else None


class Browser:
    """One session."""

    def __init__(self, driver, binary, profile):
        self._driver = driver
        # No sandbox: in a container's root it cannot start.
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
        arguments += ["--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking"]
        chrome = {"binary": binary, "args": arguments}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"

    def open(self, page):
        self._ask("POST", f"{self._session}/url", {"url": page.resolve().as_uri()})

    def reload(self):
        self._ask("POST", f"{self._session}/refresh", {})

    def run(self, script, *arguments):
        """Run JavaScript, with `return` and `arguments`; a promise is waited for."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        told = {"cmd": command, "params": parameters}
        return self._ask("POST", f"{self._session}/goog/cdp/execute", told)

    def resize(self, width, height=900):
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def prefer(self, theme):
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.devtools("Emulation.setEmulatedMedia", media="", features=[feature])

    def press(self, key):
        pressed = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        actions = {"actions": [{"type": "key", "id": "keyboard", "actions": pressed}]}
        self._ask("POST", f"{self._session}/actions", actions)

    def drag(self, selector, *offsets):
        """Drag the mouse over an element; offsets are in pixels from its centre."""
        element = self.run("return document.querySelector(arguments[0])", selector)
        moves = [{"type": "pointerMove", "origin": element, "x": x, "y": y} for x, y in offsets]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        mouse = {"type": "pointer", "id": "mouse", "actions": actions}
        self._ask("POST", f"{self._session}/actions", {"actions": [mouse]})

    def console(self):
        """Return what the page wrote to the console since the last call."""
        return [entry["message"] for entry in self._ask("POST", f"{self._session}/se/log", {"type": "browser"})]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._ask("GET", f"{self._session}/screenshot")))

    def pdf(self, path):
        path.write_bytes(base64.b64decode(self._ask("POST", f"{self._session}/print", {})))

    def close(self):
        self._ask("DELETE", self._session)

    def _ask(self, method, path, content=None):
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self._driver + path, data, {"Content-Type": "application/json"})
        request.method = method
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]


@contextmanager
def started(profile):
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
def browser_or_skip(profile):
    """Start a browser, or skip the test where there is none."""
    if browser_here() is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    with started(profile) as browser:
        yield browser


def wait_for(browser, script, seconds=5):
    """Return what a script answers as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (found := browser.run(script)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def passes_axe(browser):
    """Run axe-core, whose rules have the contrast of WCAG 2.1 at level AA, in both themes."""
    package = pytest.importorskip("axe_core_python", reason="needs the `dev` extra")
    script = Path(package.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    browser.run(f"{script}\nwindow.axe = axe;")
    # Colours are all that the theme changes; what passes is not to be told.
    for theme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        browser.prefer(theme)
        violations = "found.violations.map((one) => [one.id, one.nodes[0].html])"
        script = f"return axe.run(arguments[0]).then((found) => {violations})"
        found = browser.run(script, {"resultTypes": ["violations"], **rules})
        assert found == [], json.dumps(found)
