"""`diagnose --like`: planted causes of differing vectors are named, and none is named without a cause."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_server import serving
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.diagnosis.like import diagnose_vectors
from stsbench.testing import SENTENCES, assert_same_vectors

_SCRIPT = Path(__file__).parents[2] / "benchmarks" / "served_vectors.py"
_spec = importlib.util.spec_from_file_location("served_vectors", _SCRIPT)
assert _spec is not None
assert _spec.loader is not None
study = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(study)

BUDGET = 600.0


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that gives the plain computation of a tiny checkpoint, and its encoder."""
    made: dict[str, Any] = {}

    def of(kind: str) -> Any:
        if kind not in made:
            folder = study.make(kind, tmp_path_factory.mktemp("served") / kind)
            own = study.Plain(kind, folder)
            made[kind] = own, sb.load(folder, device="cpu", pooling=own.pooling, max_length=512)
        return made[kind]

    return of


PLANTED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("bert", {}, ()),
    ("bert", {"batch": 8, "sorted": True, "precision": "bfloat16"}, ("in bf16",)),
    ("bert", {"special": lambda ids, _: ids[:-1]}, (r"leaves out the final \[SEP\]",)),
    ("bert", {"limit": 64, "pooling": "avg"}, ("uses pooling avg", "cuts the end beyond 64 tokens")),
    ("roberta", {"seen": True, "batch": 16}, ("lets attention see the padding", "batches of 16 in the given")),
    ("roberta", {"text": str.lower, "prompt": "query: "}, ("lower-cases", "puts 'query: ' before")),
    ("mpnet", {"mask": "causal", "dims": 32}, ("causal attention mask", "keeps the first 32 dimensions")),
    ("llama", {"special": lambda ids, t: [*ids, t.eos_token_id]}, ("adds a final special token",)),
    ("t5", {"rows": study.by_length, "unit": True}, ("returns the rows sorted by length", "to unit length")),
]


@pytest.mark.parametrize(("kind", "choices", "words"), PLANTED, ids=range(len(PLANTED)))
def test_a_planted_cause_is_named(plain: Any, kind: str, choices: dict[str, Any], words: tuple[str, ...]) -> None:
    own, encoder = plain(kind)
    found = diagnose_vectors(encoder, own.vectors(list(SENTENCES), **choices), SENTENCES, budget=BUDGET)
    is_clean = not words or words[0].startswith("in ")
    assert (found.exit_code, found.explained) == (0 if is_clean else 1, True), found.sentence
    for word in words:
        assert study.re.search(word, found.sentence), found.sentence


def test_vectors_of_another_model_have_no_cause_but_that_model(plain: Any) -> None:
    (_, encoder), (own, other) = plain("bert"), plain("roberta")
    vectors = own.vectors(list(SENTENCES))
    found = diagnose_vectors(encoder, vectors, budget=1.0)
    assert (found.exit_code, found.explained) == (1, False)
    assert "None of the settings gives these vectors" in found.sentence
    named = diagnose_vectors(encoder, vectors, other=other, budget=1.0)
    assert (named.explained, f"uses {other.identity.name}" in named.sentence) == (True, True)


@pytest.mark.gpu
def test_a_checkpoint_on_a_gpu_is_compared(plain: Any) -> None:
    if not study.torch.cuda.is_available():
        pytest.skip("no CUDA device")
    own, encoder = plain("bert")
    there = sb.load(encoder.checkpoint.folder, device="cuda", pooling=own.pooling, max_length=512)
    found = diagnose_vectors(there, own.vectors(list(SENTENCES), seen=True, batch=16), budget=BUDGET)
    assert (found.explained, "lets attention see the padding" in found.sentence) == (True, True)


@pytest.mark.parametrize(("cut", "code"), [(512, 0), (32, 1)])
def test_the_command_compares_a_server_and_saved_vectors(
    plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int, code: int
) -> None:
    own, encoder = plain("bert")
    monkeypatch.setenv("LOGNAME", "ada")  # messages and records leave out the user's name
    folder = str(shutil.copytree(encoder.checkpoint.folder, tmp_path / "ada" / "bert"))
    saved, lines = tmp_path / "v.npy", tmp_path / "s.txt"
    texts = [text for text in SENTENCES if "\n" not in text]
    lines.write_text("\n".join(texts) + "\n", encoding="utf-8")
    np.save(saved, own.vectors(texts, limit=cut))
    use = ["--pooling", own.pooling, "--max-length", "512", "--json", "-q", "--device", "cpu"]
    with serving(lambda sentences: own.vectors(sentences, limit=cut)) as server:
        for like in ([server.model], [str(saved), "--sentences", str(lines)]):
            done = CliRunner().invoke(app, ["diagnose", "-m", folder, "--like", *like, *use])
            assert done.exit_code == code, done.output
            answer = json.loads(done.stdout)
            assert (answer["explained"], "cuts the end beyond 32" in answer["sentence"]) == (True, code == 1)


def test_a_report_of_a_served_model_names_the_cause(plain: Any, tmp_path: Path) -> None:
    own, encoder = plain("bert")
    with serving(lambda sentences: own.vectors(sentences, pooling="avg")) as server:
        run = sb.evaluate(server.model, "sample", use_cache=False)
        page = sb.report(run, tmp_path / "page", like=encoder, analyse=False)
    named = f"{run.model.name} uses pooling avg: with that, 50 of 50 vectors agree"
    assert named in page.read_text(encoding="utf-8")
    tables = [page.with_name("tables") / f"like-1-{place}.csv" for place in (1, 2)]
    first, second = (table.read_text(encoding="utf-8").splitlines()[:2] for table in tables)
    assert (first[1].startswith("uses pooling avg,50,"), second[0]) == (True, "sentence,your error,nearest")


def test_a_sentence_that_a_server_refuses_is_left_out_and_one_that_differs_is_shown(plain: Any) -> None:
    own, encoder = plain("bert")
    longest, other = max(SENTENCES, key=len), SENTENCES[0]

    def refuse(handler: Any, texts: list[str]) -> bool:
        return longest in texts and (handler.answer(400, {"error": "too long"}) or True)

    with serving(lambda texts: own.vectors([text[::-1] if text == other else text for text in texts])) as server:
        server.fault = refuse
        result = diagnose_vectors(encoder, server.model)
        assert result.sentence.startswith(
            "Your vectors, in fp32, but not of all sentences: 48 of 49 vectors agree"
        )
        assert other[:20] in result.sentence
        assert result.notes == ("The server refuses 1 of the sentences: they are left out.",)
        server.fault = lambda handler, _: handler.answer(400, {"error": "too long"}) or True
        with pytest.raises(UserError, match="too long"):
            diagnose_vectors(encoder, server.model)


def test_the_assertion_names_the_cause(plain: Any) -> None:
    own, encoder = plain("bert")
    half = own.vectors(list(SENTENCES), precision="bfloat16")
    assert assert_same_vectors(half, encoder).precision == "bf16"
    with pytest.raises(AssertionError, match="The same vectors, in bf16"):
        assert_same_vectors(half, encoder, "fp16")
    with pytest.raises(AssertionError, match="uses pooling avg"):
        assert_same_vectors(own.vectors(list(SENTENCES), pooling="avg"), encoder)


@pytest.mark.parametrize(
    ("vectors", "sentences", "message"),
    [
        (np.ones((3, 48)), None, "of shape .3, 48. for 50 sentences"),
        (np.ones((0, 48)), [], "of shape .0, 48. for 0 sentences"),
        (np.full((50, 48), np.nan), None, "finite numbers"),
        (np.ones((50, 99)), None, "99 dimensions, and the model's have fewer"),
    ],
    ids=range(4),
)
def test_mistakes(plain: Any, vectors: Any, sentences: list[str] | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        diagnose_vectors(plain("bert")[1], vectors, sentences)


@pytest.mark.long
def test_the_whole_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["served_vectors.py", str(tmp_path), "--warm", "--budget", "600"])
    study.main()
    causes, of, pairs, of_pairs, accused = map(
        int, study.re.findall(r"\d+", capsys.readouterr().out.splitlines()[-1])
    )
    assert causes + pairs >= 0.95 * (of + of_pairs)
    assert accused <= 2
