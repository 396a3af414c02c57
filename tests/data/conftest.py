"""A clean environment, a small data set in the benchmarks' layout, and a web server that can misbehave."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

STS12_SUBSETS = ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews")
PAIRS = "the kettle sings .\tthe kettle whistles .\nan owl naps .\ta bus leaves .\nrain fell .\tit rained .\n"


@pytest.fixture(autouse=True)
def _no_mirror_no_proxy_no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda _: None))


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
    """The answer to a path: for the first requests refusals, delays in seconds, and cuts after some bytes."""

    body: bytes = b""
    location: str | None = None
    statuses: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)


class Site:
    """A web server on this machine, its pages, and the paths of the requests."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.pages: dict[str, Page] = {}
        self.requests: list[str] = []

    def put(self, path: str, *body: bytes, **how: Any) -> str:
        self.pages[path] = Page(*body, **how)
        return self.base + path


@pytest.fixture
def site() -> Iterator[Site]:
    """Start a web server on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.requests.append(self.path)
            page = here.pages.get(self.path)
            if page is not None and page.delays:
                sleep(page.delays.pop(0))
            if page is None or page.statuses:
                self.send_error(page.statuses.pop(0) if page is not None else 404)
                return
            self.send_response(302 if page.location else 200)
            self.send_header("Content-Length", str(len(page.body)))
            if page.location:
                self.send_header("Location", page.location)
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(page.body[: page.cuts.pop(0)] if page.cuts else page.body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the tests' output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield here
    server.shutdown()
    server.server_close()
    thread.join()
