"""Models behind a server: vectors, faults, resuming, and what no record, log or cache may hold."""

import json
import logging
from dataclasses import replace
from itertools import cycle
from threading import Barrier

import numpy as np
import pytest
from small_server import NAME, serving, vectors_of

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import main
from stsbench.encoders import endpoint
from stsbench.encoders.cache import embeddings_dir
from stsbench.encoders.plan import embed
from stsbench.scoring.subjects import vectors_of as vectors_in

TEXTS = [f"{'so ' * (number % 9)}sentence {number}" for number in range(600)]
KEY = "sk-planted-key-7"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("stsbench.encoders.endpoint.PAUSE", 0.0)
    for name in endpoint.KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(monkeypatch):
    """Returns a function that runs `stsbench run` and returns its exit code."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["stsbench", "run", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    return call


def encode(model, texts=TEXTS, **options):
    embeddings = embed(model if not isinstance(model, str) else sb.load(model, **options), texts)
    (vectors,) = embeddings.vectors.values()
    return vectors[embeddings.rows]


def always(status, content, **headers):
    return {"fault": lambda handler, _: handler.answer(status, content, **headers) or True}


def changed(change):
    return {"change": lambda content: content | {"data": change(content["data"])}}


def first_as(vector):
    return changed(lambda data: [data[0] | {"embedding": vector}, *data[1:]])


# One vector too few in a request, one too many in the next: 10 for 10 sentences in all.
UNEVEN = cycle([-1, 1, 0, 0, 0])
MISTAKES = [
    ("http://127.0.0.1:9/v1#tiny", {}, ("127.0.0.1:9/v1#tiny cannot be reached", "start the server")),
    ("{url}", {}, ("lacks the name", "#NAME")),
    ("http:///v1#tiny", {}, ("invalid",)),
    ("http://127.0.0.1:99999/v1#tiny", {}, ("invalid",)),
    ("{url}?key=1#tiny", {}, ("invalid",)),
    ("{url}/v2#tiny", always(404, "<html>"), ("404", "write the address")),
    ("{url}#tinny", {}, ("no model tinny", "did you mean tiny")),
    ("{model}", {"key": "right"}, ("needs a key", "401", "STSBENCH_API_KEY")),
    ("{model}", always(403, {}), ("needs a key", "403")),
    ("{model}", always(413, {}), ("12 characters", "413")),
    ("{model}", always(400, {"error": "no context"}), ("no context", "400", "12 characters", "log")),
    ("{model}", always(429, {}, Retry_After="0"), ("busy after 6 retries", "429", "resumes")),
    ("{model}", always(503, "<html>"), ("busy", "503")),
    ("{model}", always(500, {"error": "no memory"}), ("no memory", "500", "log")),
    ("{model}", always(302, {}, Location="http://elsewhere.test/v1?key=1"), ("'http://elsewhere.test/v1'",)),
    ("{model}", always(200, "<html>"), ("without vectors (text/html)", "write the address")),
    ("{model}", always(200, {"error": "none"}), ("without vectors (application/json)",)),
    ("{model}", changed(lambda data: data[1:]), ("vectors for", "sentences")),
    ("{model}", changed(lambda data: [*data, *data][: len(data) + next(UNEVEN)]), ("vectors for 2 sentences",)),
    ("{model}", first_as([[1.0] * 6]), ("without vectors",)),
    ("{model}", first_as("AAA"), ("without vectors",)),
    ("{model}", first_as([]), ("without vectors",)),
    ("{model}", first_as([1.0, None, 0, 0, 0, 0]), ("NaN",)),
    ("{model}", first_as([float("nan")] * 6), ("NaN",)),
    ("{model}", first_as([1e300] * 6), ("float32",)),
    ("{model}", first_as([1.0] * 5), ("of 5 and of 6 dimensions",)),
]


@pytest.mark.parametrize(("address", "settings", "words"), MISTAKES)
def test_a_fault_is_one_sentence_and_leaves_nothing(address, settings, words, tmp_path, capsys, run):
    with serving(**settings) as server:
        model = address.format(url=server.url, model=server.model)
        (tmp_path / "pairs.tsv").write_text("a long text\tb\t1\nsentence two\td\t2\ne\tf\t3\ng\th\t0\ni\tj\t2\n")
        out = tmp_path / "run"
        code = run("-m", model, "--data", tmp_path / "pairs.tsv", "--out", out)
    printed = capsys.readouterr()
    assert (code, printed.out, out.exists()) == (2, "", False)
    (line,) = printed.err.splitlines()
    assert all(word in line for word in words), line


def test_vectors_are_in_order_from_requests_at_once_in_base64_and_as_floats_and_with_prompts():
    with serving(change=lambda content: content | {"data": content["data"][::-1]}) as server:
        assert np.array_equal(encode(server.model), vectors_of(TEXTS).astype(np.float32))
        assert max(map(len, server.received)) == endpoint.SENTENCES
        prompted = encode(server.model, prompt="find: ", dimensions=2)
        assert np.array_equal(prompted, vectors_of([f"find: {text}" for text in TEXTS]).astype(np.float32)[:, :2])

    barrier = Barrier(endpoint.AT_ONCE)
    with serving(fault=lambda *_: barrier.wait(10) < 0) as server:  # answers when all requests are there
        assert len(encode(server.model, TEXTS[: endpoint.AT_ONCE * endpoint.SENTENCES])) == 256

    def without_base64(handler, _):
        return "base64" in handler.body and (handler.answer(422, {"detail": "unknown field"}) or True)

    with serving(fault=without_base64) as server:
        assert np.array_equal(encode(server.model), vectors_of(TEXTS).astype(np.float32))


def test_each_side_of_a_pair_has_its_prompt():
    with serving() as server:
        record = sb.evaluate(sb.load(server.model, prompts="a: ,b: ", revision="1"), "sample")
        sent = {text[:3] for texts in server.received for text in texts}
    assert sent == {"a: ", "b: "}
    assert "|prompts:" in record.signature


def test_a_busy_server_and_one_with_a_limit_are_asked_again():
    asked = set()

    def sometimes(handler, texts):
        if len(texts) > 5:
            return handler.answer(413, {}) or True
        is_new = texts[0] not in asked
        asked.add(texts[0])
        return is_new and (handler.answer(429, {}, Retry_After="0") or True)

    with serving(fault=sometimes) as server:
        model = sb.load(server.model)
        encode(model, TEXTS[:50])
        count = len(server.received)
        assert np.array_equal(encode(model), vectors_of(TEXTS).astype(np.float32))
    assert max(map(len, server.received[count:])) <= 5


def test_an_interrupted_run_resumes_at_the_cost_of_a_batch():
    with serving() as server:
        model = replace(sb.load(server.model), token_budget=1000)
        server.fault = lambda handler, _: len(server.received) > 30 and (handler.answer(500, {}) or True)
        with pytest.raises(UserError, match="500"):
            encode(model)
        server.fault, server.encode = None, lambda texts: -vectors_of(texts)
        with pytest.raises(UserError, match="has changed"):
            encode(model)
        server.encode, before = vectors_of, len(server.received)
        assert np.array_equal(encode(model), vectors_of(TEXTS).astype(np.float32))
        answered, kept = sum(map(len, server.received[:30])), len(TEXTS) - sum(map(len, server.received[before:]))
        assert 0 <= answered - kept <= 1000 // len(min(TEXTS, key=len))
        assert kept > 50
        count = len(server.received)
        encode(model)
        assert sum(map(len, server.received[count:])) == 16


def test_a_server_that_changed_is_refused_unless_its_revision_has_a_label():
    with serving() as server:
        unlabelled = sb.evaluate(server.model, "sample")
        labelled = sb.evaluate(sb.load(server.model, revision="v1"), "sample")
        assert labelled.model.use.revision == "v1"
        texts = [text for texts in server.received for text in texts]
        vectors_in(unlabelled, texts)
        server.encode = lambda texts: vectors_of([f"{text}!" for text in texts])
        for action in (lambda: vectors_in(unlabelled, texts), lambda: sb.evaluate(server.model, "sample")):
            with pytest.raises(UserError, match=r"has changed.*--revision"):
                action()
        count = len(server.received)
        assert sb.evaluate(sb.load(server.model, revision="v1"), "sample").scores == labelled.scores
        vectors_in(labelled, texts)
        assert len(server.received) == count
        other = sb.evaluate(sb.load(server.model, revision="v2"), "sample")
        assert other.scores != labelled.scores


def test_no_key_and_no_password_is_kept_or_printed(tmp_path, monkeypatch, capsys, caplog, run):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    out = tmp_path / "run"
    with serving(key=KEY) as server:
        assert run("-m", server.model, "-t", "sample", "--out", out) == 0
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        with_login = server.model.replace("http://", f"http://ada:{KEY}@")
        assert run("-m", with_login, "-t", "sample", "--out", out / "b") == 2
        server.key = ""
        assert run("-m", with_login, "-t", "sample", "--out", out / "b") == 0
        assert server.headers[-1]["Authorization"].startswith("Basic ")
        server.fault = lambda handler, _: handler.answer(400, {"error": f"not {KEY}"}) or True
        assert run("-m", with_login, "-t", "sample", "--no-cache", "--out", out / "c") == 2
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert list(embeddings_dir().glob("*.vectors"))
    assert json.loads((out / "run.json").read_text())["model"]["name"] == f"{server.url}#{NAME}"
    for content in [*written, *capsys.readouterr(), caplog.text]:
        assert (KEY.encode() if isinstance(content, bytes) else KEY) not in content
    monkeypatch.setenv("STSBENCH_API_KEY", "line\nbreak")
    with pytest.raises(UserError, match="set it again") as error:
        encode(server.model, ["a"])
    assert "break" not in str(error.value)
