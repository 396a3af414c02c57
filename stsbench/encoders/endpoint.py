"""A model behind a server with the OpenAI embeddings protocol: vLLM, llama.cpp, Ollama, TEI, infinity.

`http://127.0.0.1:8000/v1#NAME` is the address without `/embeddings`, and the model's name there. The server
chooses pooling, length and precision; prompts and the processing of vectors are applied here.
"""

import os
from base64 import b64decode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.files import fingerprint
from stsbench.base.words import suggestion
from stsbench.encoders.prompts import SidedEncoder, in_sides, prompts_as_texts
from stsbench.encoders.protocol import ENDPOINT, FloatMatrix, Identity, OwnPooling, TokenSequence, as_float32
from stsbench.encoders.use import UNKNOWN, Use, own_use

if TYPE_CHECKING:
    from requests import Response, Session

KEYS = ("STSBENCH_API_KEY", "OPENAI_API_KEY")
"""The environment variables of the key; the first that is set is used."""

TIMEOUT = (10.0, 300.0)
"""Seconds to connect, and to wait for an answer."""

RETRIES, PAUSE, LONGEST_PAUSE = 6, 0.5, 60
"""Retries; the seconds before the second one, which then double; and the longest `Retry-After` to obey."""

BUSY = (408, 429, 502, 503, 504)

AT_ONCE, SENTENCES = 8, 32
"""Concurrent requests, and the maximum number of sentences in a request, TEI's default limit."""

_REFUSED = (400, 413, 422)  # the request is too large, or a sentence is too long
_BASE64 = {"encoding_format": "base64"}  # a third of the size
_REMEDY = "write the address as http://127.0.0.1:8000/v1#NAME"


class RefusedError(UserError):
    """The server rejects `text`, perhaps because it is too long."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


def is_address(name: str) -> bool:
    """Returns whether a model's name is the address of a server."""
    return name.lower().startswith(("http://", "https://"))


def load_endpoint(address: str, use: Use) -> "EndpointEncoder | SidedEncoder":
    """Returns the encoder of a served model. The first request is sent for the first sentence.

    Args:
        address: of the server, with the model's name; a user and password in it are used, but not recorded.
        use: prompts, the label of the revision, and the processing of vectors.

    Raises:
        UserError: if it is not an address, or lacks the name.
    """
    try:
        parts = urlsplit(address)
        is_valid = parts.hostname and parts.port != 0 and not parts.query and "@" not in parts.path
    except ValueError:
        is_valid = False
    if not is_valid:  # not printed: it may contain part of a password
        raise UserError(f"the address of the model is invalid: {_REMEDY}.")
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    if not parts.fragment:
        raise UserError(f"the address {url} lacks the name of the model: add #NAME.")
    login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    use, _ = prompts_as_texts(f"{url}#{parts.fragment}", {}, use)
    encoder = EndpointEncoder(url, parts.fragment, use, login)
    return in_sides(
        encoder, use, lambda prompt: replace(encoder, chosen=replace(use, prompt=prompt, prompts=None))
    )


@dataclass
class EndpointEncoder(OwnPooling):
    """Sends sentences to a server, several requests at once.

    Attributes:
        url: the address without `/embeddings`, user and password.
        model: the model's name there.
        chosen: how it is used.
        login: the user and password of the address.
        token_budget: characters per call: several requests for each thread.
    """

    url: str
    model: str
    chosen: Use
    login: tuple[str, str] | None = field(default=None, repr=False)
    token_budget: int = 32_768
    _takes_base64: bool = field(default=True, init=False, repr=False)
    _most: int = field(default=SENTENCES, init=False, repr=False)
    _width: int = field(default=0, init=False, repr=False)

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        prompt, revision = self.chosen.prompt or "", self.chosen.revision
        use = replace(own_use("own", self.chosen), prompt=prompt, precision=UNKNOWN, revision=revision)
        place = fingerprint({"url": self.url, "model": self.model, "revision": revision})
        return Identity(
            f"{self.url}#{self.model}", ENDPOINT, use, place if revision else None, config_sha256=place
        )

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        may_change = "" if self.chosen.revision else "may change (see --revision), and "
        return (f"{self.identity.name} {may_change}does not tell which sentences it truncates.",)

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        texts = [f"{self.identity.use.prompt}{sequence}" for sequence in sequences]
        size = min(self._most, -(-len(texts) // AT_ONCE))
        _ = self._session  # not first in a thread
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            parts = pool.map(self._encode, [texts[start : start + size] for start in range(0, len(texts), size)])
            rows = list(chain.from_iterable(parts))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        widths = sorted({self._width or len(rows[0]), *map(len, rows)})
        if len(widths) > 1:
            raise self._error(f"returned vectors of {widths[0]} and of {widths[-1]} dimensions: see its log.")
        self._width = widths[0]
        return as_float32(np.array(rows), self.identity.name)

    def _encode(self, texts: list[str]) -> list[Any]:
        """Returns the vectors of one request, which is split in half while the server rejects its size."""
        as_base64 = self._takes_base64
        response = self._post({"model": self.model, "input": texts} | (_BASE64 if as_base64 else {}))
        if response.status_code in {400, 422} and as_base64:
            self._takes_base64 = False
            return self._encode(texts)
        if response.status_code in _REFUSED and len(texts) > 1:
            if response.status_code == 413:
                self._most = min(self._most, len(texts) // 2)
            return self._encode(texts[: len(texts) // 2]) + self._encode(texts[len(texts) // 2 :])
        if response.status_code in _REFUSED:
            text = texts[0].removeprefix(self.identity.use.prompt or "")
            raise RefusedError(f"{self.identity.name} {self._reason(response, texts)}", text)
        if response.status_code != 200:
            raise self._error(self._reason(response, texts))
        try:
            data = response.json()["data"]
            if all("index" in item for item in data):
                data.sort(key=itemgetter("index"))
            rows = [_vector(item["embedding"]) for item in data]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            kind = response.headers.get("Content-Type")
            raise self._error(f"answered without vectors ({kind}): {_REMEDY}.") from error
        if len(rows) != len(texts):
            raise self._error(f"returned {len(rows)} vectors for {len(texts)} sentences: see the server's log.")
        return rows

    def _post(self, content: dict[str, Any]) -> "Response":
        import requests

        try:
            return self._session.post(
                f"{self.url}/embeddings", json=content, timeout=TIMEOUT, allow_redirects=False
            )
        except requests.RequestException as error:
            problem = f"cannot be reached: start the server, or {_REMEDY}."
            if "Read timed out" in str(error):
                problem = f"did not answer within {TIMEOUT[1]:g} seconds: see the server's log."
            elif isinstance(error, requests.exceptions.SSLError):
                problem = "has no trusted certificate: name it in REQUESTS_CA_BUNDLE, or correct the address."
            raise self._error(problem) from error

    def _reason(self, response: "Response", texts: list[str]) -> str:
        """Returns why the server sent no vectors."""
        status, said = response.status_code, f"({response.status_code} {response.reason})"
        if response.is_redirect:
            place = response.headers["Location"].partition("?")[0]
            return f"redirects to {place!r}, and no redirect is followed: give the address itself."
        key = f"{'rejects the' if _key() else 'needs a'} key {said}: set {KEYS[0]}."
        busy = f"is still busy after {RETRIES} retries {said}: the same command resumes later."
        too_long = f"rejects a sentence of {len(texts[0]):,} characters {said}: leave it out."
        reasons = {401: key, 403: key, 413: too_long} | dict.fromkeys(BUSY, busy)
        if status in reasons:
            return reasons[status]
        names = self._names()
        if names and self.model not in names:
            return f"has no model {self.model}: {suggestion(self.model, names)}"
        if status == 404 and not names:
            return f"has no embeddings there {said}: {_REMEDY}."
        body = response.text[:200]
        for secret in filter(None, [_key(), *(self.login or ())]):
            body = body.replace(secret, "...")
        to = f" to a sentence of {len(texts[0]):,} characters" if status in _REFUSED else ""
        return f"answered {body!r} {said}{to}: see the server's log."

    def _names(self) -> list[str]:
        """Returns the names of the server's models, none if it does not list them."""
        import requests

        try:
            response = self._session.get(f"{self.url}/models", timeout=TIMEOUT, allow_redirects=False)
            return [str(model["id"]) for model in response.json()["data"]]
        except (requests.RequestException, ValueError, KeyError, TypeError):
            return []

    def _error(self, problem: str) -> UserError:
        return UserError(f"{self.identity.name} {problem}")

    @cached_property
    def _session(self) -> "Session":
        import requests
        from urllib3.util import Retry

        times: dict[str, Any] = {"total": RETRIES, "connect": 2, "read": 1, "other": 0, "backoff_factor": PAUSE}
        which: dict[str, Any] = {"status_forcelist": BUSY, "allowed_methods": None, "raise_on_status": False}
        retry = Retry(**times, **which, retry_after_max=LONGEST_PAUSE)
        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=AT_ONCE, max_retries=retry))
        session.auth = self._sign  # without it, requests takes a password from ~/.netrc
        return session

    def _sign(self, request: Any) -> Any:
        from requests.auth import HTTPBasicAuth

        if self.login is not None:
            return HTTPBasicAuth(*self.login)(request)
        if key := _key():
            request.headers["Authorization"] = f"Bearer {key}"
        return request


def _key() -> str:
    key = next(filter(None, (os.environ.get(name, "").strip() for name in KEYS)), "")
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"the key in {' or '.join(KEYS)} has invalid characters: set it again.")
    return key


def _vector(embedding: Any) -> Any:
    is_base64 = isinstance(embedding, str)
    vector = np.frombuffer(b64decode(embedding), "<f4") if is_base64 else np.array(embedding, dtype=np.float64)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(f"an array of shape {vector.shape}")
    return vector
