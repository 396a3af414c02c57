"""Where the vectors and pairs of analyses come from: records, caches and models; and `explain` and its page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_runs import write_words
from scipy.integrate import trapezoid

import stsbench as sb
from stsbench.analysis import ANALYSES
from stsbench.analysis.density import kernel_density
from stsbench.analysis.geometry import score_beside
from stsbench.analysis.retrieve import find_neighbours
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample
from stsbench.data.sentences import sentences_in
from stsbench.encoders.plan import embed
from stsbench.scoring.subjects import RecordedModel
from stsbench.scoring.tasks import read_pairs_of
from stsbench.statistics.geometry import uniformity

NO_INTERVALS = sb.Intervals(None)


@pytest.fixture
def vectors_file(tmp_path: Path) -> Path:
    return write_words(tmp_path / "words.txt")


@pytest.fixture
def run(vectors_file: Path, tmp_path: Path) -> Path:
    """Return the folder of a run of word vectors on the sample."""
    sb.evaluate(str(vectors_file), "sample", intervals=NO_INTERVALS, out=tmp_path / "run")
    return tmp_path / "run"


def test_cached_vectors_need_no_model_and_others_need_the_same_one(
    run: Path, vectors_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sb.geometry(run, task="sample")
    with monkeypatch.context() as patch:
        patch.setattr(RecordedModel, "base", property(lambda _: pytest.fail("the model was loaded")))
        assert sb.geometry(run, task="sample").frame["sentences"].tolist() == [504]
    with vectors_file.open("a", encoding="utf-8") as file:
        file.write("another " + " ".join(["0"] * 8) + "\n")
    with pytest.raises(UserError, match=r"has changed since the run: its weights_sha256 is \w{64}, the record's"):
        sb.retrieve(run, query="Something that was never encoded.")
    vectors_file.unlink()
    message = r"some of these sentences have no vector .*no such model.*`stsbench run --model .*words\.txt`"
    with pytest.raises(UserError, match=message):
        sb.retrieve(run, query="Something that was never encoded.")


def test_the_record_of_a_callable_or_of_similarities_cannot_encode(tmp_path: Path) -> None:
    record = sb.evaluate(lambda texts: [[len(text), text.count("e"), 1.0] for text in texts], "sample")
    with pytest.raises(UserError, match="the record of a callable cannot make any"):
        sb.geometry(record, task="sample")
    explanation = sb.explain(record)
    assert list(explanation.parts) == ["length-bias", "pair-kinds", "density", "ties", "threshold"]
    assert list(explanation.missing) == [name for name in ANALYSES if name not in explanation.parts]
    np.save(tmp_path / "s.npy", np.linspace(0, 1, 252))
    given = sb.import_results(tmp_path / "s.npy", gold="sample")
    with pytest.raises(UserError, match="the record of saved similarities cannot make any"):
        sb.spectrum(given, task="sample")
    with pytest.raises(UserError, match="has given similarities instead of cosines"):
        sb.density(given)


def test_dimensions_and_whitening_of_a_run_are_done_again(vectors_file: Path) -> None:
    embeddings = embed(sb.load(str(vectors_file)), sentences_in(load_sample()))
    vectors = embeddings.vectors["avg"][embeddings.rows]
    short = sb.evaluate(sb.load(str(vectors_file), dimensions=5), "sample", intervals=NO_INTERVALS)
    frame = sb.geometry(short, task="sample").frame
    assert frame["uniformity"].iloc[0] == pytest.approx(uniformity(vectors[:, :5]), abs=1e-6)
    assert frame["sts"].iloc[0] == 100 * (short.scores[0].value or 0)
    # Its score would mislead beside the sentences of other data.
    assert np.isnan(score_beside(short, "STS-B"))
    white = sb.evaluate(sb.load(str(vectors_file), whiten=4), "sample", intervals=NO_INTERVALS)
    assert set(sb.spectrum(white, task="sample").frame["dimensions"]) == {4}
    with pytest.raises(UserError, match="are whitened by each task's own sentences"):
        sb.compress(white)


def test_the_papers_rows_are_added(run: Path) -> None:
    frame = sb.length_bias(run, published=True).frame
    rows = frame[frame["model"] == "SimCSE-BERT-base (published)"].set_index(["measure", "task", "group"])["value"]
    assert rows["spearman", "STS12", "<= 3"] == pytest.approx(72.98)
    assert rows["difference", "Avg.", "gap"] == pytest.approx(1.84)
    probe = sb.repetition_bias(run, queries=5, seeds=1, published=True).frame
    printed = probe[probe["model"] == "SimCSE-BERT-base (published)"].set_index("measure")["value"]
    assert printed.to_dict() == pytest.approx({"q-s1": 26.39, "q-s2": 27.07, "rise": 0.68})


def test_explain_reads_a_task_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def read(*options: Any) -> Any:
        reads.append(options)
        return read_pairs_of(*options)

    monkeypatch.setattr("stsbench.analysis.base.read_pairs_of", read)
    explanation = sb.explain(run, intervals=NO_INTERVALS)
    # Once for geometry, spectrum and EvalRank together, and once for stability, which has another text.
    assert len(reads) == len(set(reads)) == 2
    assert list(explanation.parts) == list(explanation.to_dict()) == list(ANALYSES)
    assert set(explanation.frame["analysis"]) == set(ANALYSES)


def test_neighbours_are_those_of_a_full_sort_without_zero_vectors() -> None:
    rng = np.random.default_rng(0)
    queries, corpus = rng.normal(size=(4, 6)), rng.normal(size=(50, 6))
    cosines = np.array([[q @ c / np.linalg.norm(q) / np.linalg.norm(c) for c in corpus] for q in queries])
    corpus[[3, 30]], cosines[:, [3, 30]] = 0, -2
    found = find_neighbours("a model", queries, [corpus[:20], corpus[20:]], 12)
    expected = np.argsort(-cosines, axis=1)[:, :12]
    assert found.rows.tolist() == expected.tolist()
    assert found.cosines == pytest.approx(np.take_along_axis(cosines, expected, axis=1))


def test_a_corpus_has_each_sentence_once_by_the_number_of_its_line(
    hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\ufeffthe owl sings\n\n the owl sings \r\nrain again\n", encoding="utf-8")
    frame = sb.retrieve(hash_encode, query="the owl", corpus=path, k=2).frame
    assert frame[["sentence", "number"]].values.tolist() == [["the owl sings", 1], ["rain again", 3]]


def test_a_density_reflects_what_falls_outside_and_needs_spread() -> None:
    values = np.clip(np.random.default_rng(1).normal(0.9, 0.1, size=80), -1, 1)
    grid = np.linspace(-1, 1, 4001)
    width = values.std(ddof=1) * len(values) ** (-1 / 5)
    reflected = np.concatenate([values, -2 - values, 2 - values])
    kernels = np.exp(-0.5 * ((grid[:, np.newaxis] - reflected) / width) ** 2)
    density = kernel_density(values, grid)
    assert density == pytest.approx(kernels.sum(axis=1) / (len(values) * width * np.sqrt(2 * np.pi)), abs=1e-9)
    assert trapezoid(density, grid) == pytest.approx(1, abs=1e-4)
    for constant in ([], [0.5], [0.5, 0.5, 0.5]):
        assert np.isnan(kernel_density(np.array(constant), grid)).all()
