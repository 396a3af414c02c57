"""A model behind a server that speaks the OpenAI embeddings protocol: vLLM, llama.cpp, Ollama, TEI, infinity.

`http://127.0.0.1:8000/v1#NAME` is the address without `/embeddings`, and the model's name there. The server
chooses pooling, length and precision; the prompt, and the processing of the vectors, are ours.
"""

import os
from base64 import b64decode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote, urlsplit

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.files import fingerprint
from stsbench.base.words import suggestion
from stsbench.encoders.prompts import SidedEncoder, prompts_as_texts
from stsbench.encoders.protocol import ENDPOINT, FloatMatrix, Identity, OwnPooling, TokenSequence, as_float32
from stsbench.encoders.use import UNKNOWN, Use, own_use
from stsbench.render.text import one_line

if TYPE_CHECKING:
    from requests import Response, Session

KEYS = ("STSBENCH_API_KEY", "OPENAI_API_KEY")
"""The environment variables of the key; the first that is set is used."""

TIMEOUT = (10.0, 300.0)
"""Seconds to connect, and to wait for an answer."""

AT_ONCE, SENTENCES = 8, 32
"""Requests at once, and sentences in a request at most, which is what TEI accepts by default."""

RECONNECTIONS, RETRIES, PAUSE = 2, 6, 0.5
"""Further attempts to connect, and when the server is busy; the seconds before the second, which then double."""

LONGEST_PAUSE = 60.0
"""Seconds to wait at most when the server sends `Retry-After`."""

_BUSY = (408, 429, 502, 503, 504)
_EXAMPLE = "http://127.0.0.1:8000/v1#NAME"


def is_address(name: str) -> bool:
    """Returns whether a model's name is the address of a server."""
    return name.lower().startswith(("http://", "https://"))


def load_endpoint(address: str, use: Use) -> "EndpointEncoder | SidedEncoder":
    """Returns the encoder of a served model. The first request is sent for the first sentence.

    Args:
        address: of the server, with the model's name; a user and password in it are used, but kept in no record.
        use: prompts, the label of the revision, and the processing of vectors.

    Raises:
        UserError: if it is not an address, or lacks the name.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(f"the address of the model is invalid ({error}): write it as {_EXAMPLE}.") from error
    url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    if not host or parts.query or not parts.fragment:
        wrong = "has no host" if not host else "has a query" if parts.query else "lacks the model's name"
        raise UserError(f"the address {url} {wrong}: write it as {_EXAMPLE}.")
    login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    use, _ = prompts_as_texts(f"{url}#{parts.fragment}", {}, use)
    first, second = use.own_prompts or (use.prompt, None)
    encoder = EndpointEncoder(url, parts.fragment, replace(use, prompt=first, prompts=None), login)
    if second is None:
        return encoder
    other = replace(encoder, chosen=replace(encoder.chosen, prompt=second))
    return SidedEncoder((encoder, other), encoder.notes)


@dataclass
class EndpointEncoder(OwnPooling):
    """Sends sentences to a server, several requests at once.

    Attributes:
        url: the address without `/embeddings`, user and password.
        model: its name on the server.
        chosen: how it is used.
        login: the user and password of the address.
        token_budget: characters until vectors are saved: enough for all requests at once.
    """

    url: str
    model: str
    chosen: Use
    login: tuple[str, str] | None = field(default=None, repr=False)
    token_budget: int = 32_768
    _asks_for_base64: bool = field(default=True, init=False, repr=False)
    _width: int = field(default=0, init=False, repr=False)

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        chosen, revision = self.chosen, self.chosen.revision
        use = replace(own_use("own", chosen), prompt=chosen.prompt or "", precision=UNKNOWN, revision=revision)
        place = fingerprint({"url": self.url, "model": self.model, "revision": revision})
        weights = None if revision is None else place
        return Identity(f"{self.url}#{self.model}", ENDPOINT, use, weights_sha256=weights, config_sha256=place)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        name = self.identity.name
        notes = [f"{name} is a server: sub-word lengths and truncated sentences are not counted."]
        if self.chosen.revision is None:
            notes.append(f"{name} may change: some cached vectors are compared before use. See --revision.")
        return tuple(notes)

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        texts = [f"{self.identity.use.prompt}{sequence}" for sequence in sequences]
        size = min(SENTENCES, -(-len(texts) // AT_ONCE))
        _ = self._session  # created here: a cached property is not safe among threads
        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            parts = pool.map(self._encode, [texts[start : start + size] for start in range(0, len(texts), size)])
            rows = list(chain.from_iterable(parts))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return as_float32(np.array(rows), self.identity.name)

    def _encode(self, texts: list[str]) -> list[Any]:
        """Returns the vectors of one request, which is halved while the server refuses its size."""
        response = self._post(texts)
        if response.status_code == 413 and len(texts) > 1:
            middle = len(texts) // 2
            return self._encode(texts[:middle]) + self._encode(texts[middle:])
        if response.status_code in {400, 422} and self._asks_for_base64:
            self._asks_for_base64 = False
            return self._encode(texts)
        if response.status_code != 200:
            self._refuse(response, texts)
        try:
            data = response.json()["data"]
            data = sorted(data, key=lambda item: item["index"]) if all("index" in item for item in data) else data
            rows = [_vector(item["embedding"]) for item in data]
        except (ValueError, KeyError, TypeError) as error:
            kind = response.headers.get("Content-Type", "").partition(";")[0] or "no content type"
            raise self._error(
                f"answered with something other than vectors ({kind}), so it may be no server of embeddings: "
                f"write its address as {_EXAMPLE}"
            ) from error
        if len(rows) != len(texts):
            raise self._error(f"returned {len(rows)} vectors for {len(texts)} sentences: report it to its makers")
        self._width = self._width or len(rows[0])
        if odd := [len(row) for row in rows if len(row) != self._width]:
            raise self._error(
                f"returned vectors of {self._width} and of {odd[0]} dimensions: serve a single model under a name"
            )
        return rows

    def _post(self, texts: list[str]) -> "Response":
        import requests

        content = {"model": self.model, "input": texts}
        if self._asks_for_base64:  # a third of the size
            content["encoding_format"] = "base64"
        try:
            return self._session.post(
                f"{self.url}/embeddings", json=content, timeout=TIMEOUT, allow_redirects=False
            )
        except requests.Timeout as error:
            raise self._error(f"did not answer within {TIMEOUT[1]:g} seconds: is it overloaded?") from error
        except requests.exceptions.SSLError as error:
            raise self._error("has a certificate that is not trusted: set REQUESTS_CA_BUNDLE") from error
        except requests.RequestException as error:
            raise self._error("cannot be reached: start the server, or correct the address") from error

    def _refuse(self, response: "Response", texts: list[str]) -> NoReturn:
        """Raises a UserError for an answer without vectors."""
        status, said = response.status_code, f"{response.status_code} {response.reason}"
        if response.is_redirect:
            target = urlsplit(response.headers["Location"])
            place = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}"
            raise self._error(f"redirects to {place}, which is not followed: give the address itself")
        if status in {401, 403}:
            raise self._error(
                f"refuses the key ({said}): set {KEYS[0]}" if _key() else f"needs a key: set {KEYS[0]}"
            )
        if status == 413:
            raise self._error(f"refuses a sentence of {len(texts[0]):,} characters ({said}): leave it out")
        if status in _BUSY:
            raise self._error(
                f"is still busy after {RETRIES} retries ({said}): repeat the command later to resume"
            )
        names = self._names()
        if names and self.model not in names:
            raise self._error(f"has no model {self.model}: {suggestion(self.model, names)}")
        if status == 404 and not names:
            raise self._error(f"has no embeddings there ({said}): write the address as {_EXAMPLE}")
        body = response.text[:200]
        for secret in filter(None, [_key(), *(self.login or ())]):
            body = body.replace(secret, "...")
        raise self._error(f"answered {said} ({one_line(body)}): see the server's log")

    def _names(self) -> list[str]:
        """Returns the names of the server's models, none if it does not list them."""
        import requests

        try:
            response = self._session.get(f"{self.url}/models", timeout=TIMEOUT, allow_redirects=False)
            return [str(model["id"]) for model in response.json()["data"]]
        except (requests.RequestException, ValueError, KeyError, TypeError):
            return []

    def _error(self, problem: str) -> UserError:
        return UserError(f"{self.identity.name} {problem}.")

    @cached_property
    def _session(self) -> "Session":
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        class Patience(Retry):
            def get_retry_after(self, response: Any) -> float | None:
                seconds = super().get_retry_after(response)
                return None if seconds is None else min(seconds, LONGEST_PAUSE)

        retry = Patience(
            RETRIES,
            connect=RECONNECTIONS,
            read=0,
            status_forcelist=_BUSY,
            allowed_methods=None,
            backoff_factor=PAUSE,
            raise_on_status=False,
        )
        session = requests.Session()
        session.auth = self._sign  # otherwise requests looks for a password in ~/.netrc
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE, max_retries=retry))
        return session

    def _sign(self, request: Any) -> Any:
        from requests.auth import HTTPBasicAuth

        if self.login is not None:
            return HTTPBasicAuth(*self.login)(request)
        if key := _key():
            request.headers["Authorization"] = f"Bearer {key}"
        return request


def _key() -> str:
    """Returns the key, "" for none."""
    key = next(filter(None, (os.environ.get(name, "").strip() for name in KEYS)), "")
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"the key in {' or '.join(KEYS)} has characters that no key has: set it again.")
    return key


def _vector(embedding: Any) -> Any:
    if isinstance(embedding, str):
        return np.frombuffer(b64decode(embedding, validate=True), "<f4")
    vector = np.array(embedding, dtype=np.float64)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(f"an array of shape {vector.shape}")
    return vector
