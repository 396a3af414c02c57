"""`evaluate` from Python: what it takes, what the record tells, what it refuses."""

import getpass
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_sample
from stsbench.data.tables import StsData

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]


def test_it_takes_names_data_that_was_read_and_both(hash_encode: Encode, toy_data: Data) -> None:
    data = toy_data()
    assert [task.task for task in sb.evaluate(hash_encode, data).scores] == ["toy"]
    assert [task.task for task in sb.evaluate(hash_encode, "sample").scores] == ["sample"]
    assert [task.task for task in sb.evaluate(hash_encode, [data, "sample"]).scores] == ["toy", "sample"]


def test_it_takes_a_file_of_the_person_s_own(hash_encode: Encode, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [("a b", "a c", 1), ("b d", "b d", 5), ("x y", "z y", 2), ("q r", "r q", 4)]
    lines = [f"{a},{b},{gold},{'ood' if gold > 2 else 'id'}" for a, b, gold in rows]
    path.write_text("\n".join(["s1,s2,gold,domain", *lines]), encoding="utf-8")
    record = sb.evaluate(hash_encode, sb.load_pairs(path, subset_column="domain"))
    (task,) = record.scores
    assert (task.task, task.split, task.text, task.data.status) == ("mine", "all", "user", "user")
    assert [subset.subset for subset in task.subsets] == ["id", "ood"]
    assert record.items["item_id"].tolist() == ["2", "3", "4", "5"]


def test_a_file_whose_name_is_not_utf8_can_be_scored_and_recorded(hash_encode: Encode, tmp_path: Path) -> None:
    path = tmp_path / "caf\udce9.tsv"
    try:
        path.write_text("a b\ta c\t1\nb d\tb d\t5\nc\ta\t2\n", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes no such name")
    sb.evaluate(hash_encode, data=path, out=tmp_path / "run")
    assert sb.load_run(tmp_path / "run").scores[0].task == "caf\\udce9"


def test_the_record_tells_how_it_was_made(hash_encode: Encode, toy_data: Data) -> None:
    record = sb.evaluate(hash_encode, [toy_data("a"), toy_data("b", pairs=60)], intervals=sb.Intervals())
    assert record.schema_version == 6
    assert record.stsbench == sb.__version__
    assert record.model.kind == "function"
    assert record.model.name.endswith(":encode_by_hash")
    assert (record.protocol.name, record.protocol.interval, record.protocol.level) == ("simcse", "dyadic", 0.95)
    assert set(record.seconds) == {"data", "hash", "load", "tokenize", "encode", "similarities", "score"}
    assert record.encoding["texts"] == record.encoding["sequences"] == record.encoding["encoded"]
    assert record.encoding["padded_tokens"] >= record.encoding["tokens"]
    assert len(record.items) == 90
    assert record.folder is None
    assert record.signature.splitlines() == [task.signature for task in record.scores]
    assert any("callable" in note for note in record.notes)


def test_every_distinct_sentence_is_encoded_once(toy_data: Data, hash_encode: Encode) -> None:
    seen: list[str] = []

    def encode(sentences: list[str]) -> Any:
        seen.extend(sentences)
        return hash_encode(sentences)

    data = toy_data(pairs=60)
    sb.evaluate(encode, [data, toy_data("again", pairs=60)])
    assert sorted(seen) == sorted({*data.pairs["sentence1"], *data.pairs["sentence2"]})


def test_the_table_has_a_row_per_task_and_subset_and_the_average(hash_encode: Encode, toy_data: Data) -> None:
    table = sb.evaluate(hash_encode, [toy_data("a"), toy_data("b")]).frame
    assert table["task"].tolist() == ["a", "a", "a", "b", "b", "b", "Avg."]
    assert table["subset"].tolist() == ["", "first", "second"] * 2 + [""]
    assert table["items"].tolist() == [30, 10, 20, 30, 10, 20, 60]
    assert (table["low"] < table["score"]).all()
    assert table["signature"].map(bool).tolist() == [True, False, False] * 2 + [False]


def test_two_splits_of_a_task_are_told_apart_in_the_table(hash_encode: Encode, toy_data: Data) -> None:
    table = sb.evaluate(hash_encode, [toy_data(), toy_data(split="dev", seed=1)]).frame
    assert [name for name in table["task"].unique() if ":" in name] == ["toy:test", "toy:dev"]


def test_dimensions_and_whitening_stand_in_the_signature_and_change_the_vectors(
    hash_encode: Encode, toy_data: Data
) -> None:
    plain = sb.evaluate(hash_encode, toy_data())
    cut = sb.evaluate(sb.load(hash_encode, dimensions=3), toy_data())
    white = sb.evaluate(sb.load(hash_encode, whiten=0), toy_data())
    both = sb.evaluate(sb.load(hash_encode, dimensions=6, whiten=4), toy_data())
    models = [
        record.signatures[0].model.removesuffix(f"|stsbench:{sb.__version__}") for record in (cut, white, both)
    ]
    assert models == ["own|fp32|dim3", "own|fp32|post:whiten", "own|fp32|dim6|post:whiten4"]
    assert [(record.model.use.dimensions, record.model.use.whiten) for record in (plain, cut, white, both)] == [
        (None, None),
        (3, None),
        (None, 0),
        (6, 4),
    ]
    assert len({tuple(record.items["cosine"]) for record in (plain, cut, white, both)}) == 4
    first = hash_encode([toy_data().pairs["sentence1"][0], toy_data().pairs["sentence2"][0]])[:, :3].astype("f4")
    cosine = first[0] @ first[1] / np.linalg.norm(first[0]) / np.linalg.norm(first[1])
    assert cut.items["cosine"][0] == pytest.approx(cosine, abs=1e-6)


def test_whitening_takes_each_task_s_own_sentences(hash_encode: Encode, toy_data: Data) -> None:
    a, b = toy_data("a"), toy_data("b", seed=1)
    together = sb.evaluate(sb.load(hash_encode, whiten=0), [a, b])
    alone = sb.evaluate(sb.load(hash_encode, whiten=0), b)
    np.testing.assert_allclose(together.items["cosine"][30:], alone.items["cosine"], atol=1e-9)


def test_whitening_to_all_dimensions_keeps_those_in_which_a_task_s_sentences_vary_and_names_the_task(
    hash_encode: Encode, toy_data: Data
) -> None:
    def narrow(sentences: list[str]) -> np.ndarray:
        vectors = np.asarray(hash_encode(sentences))
        return np.concatenate([vectors, vectors[:, :2]], axis=1)

    tasks = [toy_data("a"), toy_data("b", seed=1)]
    record, plain = (
        sb.evaluate(sb.load(narrow, whiten=0), tasks),
        sb.evaluate(sb.load(hash_encode, whiten=0), tasks),
    )
    width = np.asarray(hash_encode(["x"])).shape[1]
    said = [note for note in record.notes if "whitening kept" in note]
    assert said == [
        f"{task}: whitening kept the {width} of {width + 2} dimensions with any variance." for task in ("a", "b")
    ]
    assert not any("whitening kept" in note for note in plain.notes)
    with pytest.raises(sb.UserError, match=rf"60 sentences of a vary in {width} of {width + 2}; keep fewer"):
        sb.evaluate(sb.load(narrow, whiten=width + 1), tasks)


def test_nothing_that_is_stored_names_the_home_or_the_user(
    hash_encode: Encode, toy_data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / "ada"
    home.mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    vectors = home / "words.txt"
    vectors.write_text("owl 1 0\nbus 0 1\nrain 1 1\n", encoding="utf-8")
    data = toy_data()
    told = f"{home}/senteval/STS12.txt is not the catalogued file; /scratch/ada/x neither."
    data = StsData(**(vars(data) | {"problems": (told,), "status": "modified"}))
    record = sb.evaluate(vectors, data, out=home / "runs" / "x")
    assert record.model.name == "~/words.txt"
    assert "~/senteval/STS12.txt is not the catalogued file; /scratch/.../x neither." in record.notes
    stored = b"".join(path.read_bytes() for path in (home / "runs" / "x").iterdir())
    assert str(home).encode() not in stored
    assert b"/ada" not in stored


def test_a_record_is_saved_with_its_pairs_and_measured_again_replaces_itself(
    hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    first = sb.evaluate(hash_encode, toy_data(), out=tmp_path / "run")
    again = sb.evaluate(hash_encode, toy_data(), out=str(tmp_path / "run"))
    assert first.folder == again.folder == tmp_path / "run"
    assert sb.load_run(tmp_path / "run") == again
    with pytest.raises(sb.UserError, match="holds another measurement"):
        sb.evaluate(hash_encode, toy_data(seed=1), out=tmp_path / "run")
    assert sb.load_run(tmp_path / "run") == again
    other = sb.evaluate(hash_encode, toy_data(seed=1), out=tmp_path / "run", overwrite=True)
    assert sb.load_run(tmp_path / "run") == other


def test_a_folder_with_another_measurement_is_refused_before_anything_is_encoded(
    hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    sb.evaluate(hash_encode, toy_data(), out=tmp_path / "run")
    with pytest.raises(sb.UserError, match="holds another measurement"):
        sb.evaluate(lambda _sentences: pytest.fail("encoded"), toy_data(), out=tmp_path / "run")


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda sentences: np.ones((len(sentences) + 1, 4)), "returned shape"),
        (lambda sentences: np.ones(len(sentences)), "returned shape"),
        (lambda sentences: np.ones((len(sentences), 2, 2)), "returned shape"),
        (lambda _sentences: "vectors", "matrix of numbers|returned shape"),
        (lambda sentences: np.full((len(sentences), 4), np.nan), "NaN or infinite"),
    ],
)
def test_a_callable_that_gives_no_vectors_leaves_no_record(
    encode: Encode, message: str, toy_data: Data, tmp_path: Path
) -> None:
    with pytest.raises(sb.UserError, match=message):
        sb.evaluate(encode, toy_data(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_word_vectors_are_measured_and_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    words = sorted({word for text in load_sample().pairs["sentence1"] for word in text.lower().split()})
    rng = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=6))}" for word in words]
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    first, second = (sb.evaluate(tmp_path / "words.txt", "sample") for _ in range(2))
    assert first.encoding["encoded"] > 0
    assert second.encoding["encoded"] == 0
    assert first.scores == second.scores
    assert first.model.kind == "static"
    assert (first.items["subwords_a"] > 0).all()
    uncached = sb.evaluate(tmp_path / "words.txt", "sample", use_cache=False)
    assert uncached.encoding["encoded"] == first.encoding["encoded"]


def test_saved_vectors_score_as_the_function_they_came_from(
    hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    data = toy_data()
    sentences = sorted({*data.pairs["sentence1"], *data.pairs["sentence2"]})
    np.save(tmp_path / "v.npy", hash_encode(sentences))
    (tmp_path / "s.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    saved = sb.evaluate(sb.SavedVectors(tmp_path / "v.npy", tmp_path / "s.txt"), data)
    assert saved.scores[0].numbers == sb.evaluate(hash_encode, data).scores[0].numbers
    assert saved.model.name == "v"


def test_progress_is_told_of_encoding_and_of_scoring(hash_encode: Encode, toy_data: Data) -> None:
    told: list[tuple[str, int, int]] = []
    sb.evaluate(hash_encode, [toy_data("a"), toy_data("b")], progress=lambda *stage: told.append(stage))
    assert told[-1] == ("scoring", 2, 2)
    assert any(stage.startswith("encoding ") and done == total > 0 for stage, done, total in told)


def test_the_record_is_plain_json(hash_encode: Encode, toy_data: Data, tmp_path: Path) -> None:
    sb.evaluate(hash_encode, toy_data(), out=tmp_path / "run")

    def constant(name: str) -> None:
        pytest.fail(f"{name} is no JSON")

    text = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=constant)["scores"][0]["task"] == "toy"
