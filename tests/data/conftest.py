"""A clean environment, a small data set in the benchmarks' layout, and a web server that can misbehave."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import sleep

import pytest

STS12_SUBSETS = ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews")
PAIRS = "the kettle sings .\tthe kettle whistles .\nan owl naps .\ta bus leaves .\nrain fell .\tit rained .\n"


@pytest.fixture(autouse=True)
def _no_mirror_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the person's own mirror and proxy out of the tests."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_ENDPOINT", raising=False)


@pytest.fixture
def small_senteval(tmp_path: Path) -> Path:
    """Return a folder in SentEval's layout with a three-line STS12 of invented sentences."""
    folder = tmp_path / "small" / "downstream" / "STS" / "STS12-en-test"
    folder.mkdir(parents=True)
    for subset in STS12_SUBSETS:
        (folder / f"STS.input.{subset}.txt").write_text(PAIRS, encoding="utf-8")
        (folder / f"STS.gs.{subset}.txt").write_text("4.5\n\n5\n", encoding="utf-8")
    return tmp_path / "small"


@dataclass
class Page:
    """What the server answers at a path.

    `cuts` holds, for the first requests in turn, after how many bytes the connection is cut; `delays` how
    many seconds pass before the answer; `statuses` the refusals before the file is given.
    """

    body: bytes = b""
    etag: str | None = '"one"'
    last_modified: str | None = None
    ranges: bool = True
    location: str | None = None
    cuts: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    wrong_range: bool = False


class Site:
    """A web server on this machine, its pages, and what it was asked for."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str | None]] = []

    def put(self, path: str, page: Page) -> str:
        self.pages[path] = page
        return self.base + path


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        self.site.asked.append((self.path, self.headers["Range"]))
        page = self.site.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        if page.delays:
            sleep(page.delays.pop(0))
        if page.statuses:
            self.send_error(page.statuses.pop(0))
        elif page.location:
            self.send_response(302)
            self.send_header("Location", page.location)
            self.end_headers()
        else:
            self._give(page)

    def _give(self, page: Page) -> None:
        start = self._start(page)
        if start is not None and start >= len(page.body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(page.body)}")
            self.end_headers()
            return
        payload = page.body[start or 0 :]
        self.send_response(200 if start is None else 206)
        if start is not None:
            said = start + 1 if page.wrong_range else start
            self.send_header("Content-Range", f"bytes {said}-{len(page.body) - 1}/{len(page.body)}")
        if page.etag:
            self.send_header("ETag", page.etag)
        if page.last_modified:
            self.send_header("Last-Modified", page.last_modified)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(payload[: page.cuts.pop(0)] if page.cuts else payload)

    def _start(self, page: Page) -> int | None:
        wanted = self.headers["Range"]
        version = self.headers["If-Range"]
        if not wanted or not page.ranges or version not in {page.etag, page.last_modified}:
            return None
        return int(wanted.removeprefix("bytes=").removesuffix("-"))

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output quiet."""


@pytest.fixture
def site() -> Iterator[Site]:
    """Start a web server on a free port of this machine."""

    class Handler(_Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.site = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield Handler.site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def page() -> type[Page]:
    """Give tests the class of a page: conftest modules are not imported by name."""
    return Page


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let attempts follow each other at once."""
    monkeypatch.setattr("stsbench.data.download.time.sleep", lambda _seconds: None)
