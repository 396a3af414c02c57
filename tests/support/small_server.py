"""A small server of the OpenAI embeddings protocol, of the standard library, in a thread of the test."""

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

NAME = "tiny"
"""The name under which the server serves its only model."""


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    """Returns vectors that depend on the text alone, shape (texts, 6)."""
    digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:24] for text in texts]
    return np.frombuffer(b"".join(digests), "<u4").reshape(len(texts), 6) / 2**31 - 1


@dataclass
class SmallServer:
    """What the server serves, and what it was sent.

    Attributes:
        encode: texts to an array of shape (texts, dimensions).
        key: the key that requests must carry; "" for none.
        fault: called with the handler and the texts of every request; it returns whether it answered.
        change: applied to the answer's content before it is sent.
        received: the texts of each request, in the order of arrival.
        headers: of each request.
    """

    encode: Callable[[list[str]], Any] = vectors_of
    key: str = ""
    fault: Callable[[Any, list[str]], bool] | None = None
    change: Callable[[dict[str, Any]], Any] | None = None
    received: list[list[str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """The address up to the path of the protocol's version."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def model(self) -> str:
        """The address and the name, as `--model` takes them."""
        return f"{self.url}#{NAME}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    served: SmallServer
    body: str

    def do_GET(self) -> None:
        is_list = self.path == "/v1/models"
        self.answer(200 if is_list else 404, {"object": "list", "data": [{"id": NAME}]} if is_list else {})

    def do_POST(self) -> None:
        served = self.served
        self.body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        request = json.loads(self.body)
        texts = request["input"]
        served.received.append(texts)
        served.headers.append(dict(self.headers))
        if served.fault is not None and served.fault(self, texts):
            return
        if served.key and self.headers["Authorization"] != f"Bearer {served.key}":
            self.answer(401, {"error": {"message": f"not a key: {self.headers['Authorization']}"}})
        elif self.path != "/v1/embeddings":
            self.answer(404, {"detail": "Not Found"})
        elif request["model"] != NAME:
            self.answer(404, {"error": {"message": f"no model {request['model']}"}})
        else:
            as_base64 = request.get("encoding_format") == "base64"
            rows = np.asarray(served.encode(texts), dtype="<f4")
            vectors = [base64.b64encode(row.tobytes()).decode() if as_base64 else row.tolist() for row in rows]
            data = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
            content = {"object": "list", "model": NAME, "data": data}
            self.answer(200, content if served.change is None else served.change(content))

    def answer(self, status: int, content: Any, **headers: str) -> None:
        """Sends an answer: JSON, or HTML if the content is a text."""
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(content, str) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        with suppress(ConnectionError):  # an interrupted client
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving(encode: Callable[[list[str]], Any] = vectors_of, **settings: Any) -> Iterator[SmallServer]:
    """Serves vectors on a free port of this machine until the block ends; see `SmallServer` for the settings."""
    served = SmallServer(encode, **settings)
    handler = type("_Bound", (_Handler,), {"served": served})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        served.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
