"""`diagnose`: a score taken by another choice is traced back to that choice, and nothing is encoded twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample, load_sts
from stsbench.diagnosis import encoding
from stsbench.diagnosis.result import Diagnosis
from stsbench.encoders.plan import embed
from stsbench.scoring.kinds.relatedness import regress, scores_on_test
from stsbench.scoring.settings import Intervals

NO_INTERVALS = Intervals(None)


def score(folder: Path, tasks: str = "sample", *, data: Path | None = None, **choices: Any) -> dict[str, str]:
    """Return what a plain run scores with other choices, as claims are written, to six digits."""
    model = {name: choices.pop(name) for name in ("pooling", "max_length") if name in choices}
    encoder = sb.load(folder, device="cpu", **model)
    dirs = [data] if data else []
    record = sb.evaluate(
        encoder, tasks, protocol=sb.protocol(**choices), intervals=NO_INTERVALS, data_dirs=dirs, use_cache=False
    )
    found = {task.task: f"{100 * (task.value or 0):.6f}%" for task in record.scores}
    if record.averages:
        found["Avg."] = f"{100 * (record.averages[0].value or 0):.6f}%"
    return found


def number(claim: str) -> float:
    return float(claim.removesuffix("%"))


def _sample_sides() -> list[str]:
    pairs = load_sample().pairs
    return [*pairs["sentence1"], *pairs["sentence2"]]


def best_changes(diagnosis: Diagnosis) -> dict[str, str]:
    return diagnosis.search.explanations[0].best.choices


@pytest.mark.parametrize(
    "choice",
    [
        *({"pooling": name} for name in ("cls", "cls_before_pooler", "avg_top2", "avg_first_last", "max", "last")),
        {"pooling": "avg_static_last"},
        {"aggregation": "mean"},
        {"metric": "pearson"},
        {"similarity": "dot"},
        {"similarity": "euclidean"},
        {"similarity": "manhattan"},
        {"max_length": 8},
        {"pooling": "max", "metric": "pearson"},
        {"pooling": "cls", "aggregation": "mean", "similarity": "dot"},
    ],
    ids=lambda choice: ", ".join(choice.values() if "max_length" not in choice else ["length 8"]),
)
def test_a_score_is_traced_back_to_the_choices_that_it_was_taken_with(
    tiny_bert: Path, choice: dict[str, Any]
) -> None:
    claim = score(tiny_bert, **choice)["sample"]
    found = sb.diagnose(sb.load(tiny_bert, device="cpu"), claim, tasks="sample", lengths=[8, 12], tolerance=0.001)
    expected = {{"similarity": "comparison"}.get(name, name): str(value) for name, value in choice.items()}
    assert best_changes(found) == expected
    assert found.search.explanations[0].best.distance < 1e-3


def test_the_person_s_own_setting_is_the_default(tiny_bert: Path) -> None:
    own = sb.load(tiny_bert, device="cpu", pooling="cls", max_length=8)
    claim = score(tiny_bert, pooling="cls", max_length=8, aggregation="wmean")["sample"]
    found = sb.diagnose(own, claim, tasks="sample", protocol=sb.protocol("senteval"))
    assert found.search.default.fits
    assert found.search.default.scores == pytest.approx([number(claim)], abs=1e-3)
    claim = score(tiny_bert, pooling="avg", max_length=8, aggregation="wmean")["sample"]
    again = sb.diagnose(own, claim, tasks="sample", protocol=sb.protocol("senteval"))
    assert best_changes(again) == {"pooling": "avg"}


def test_a_shorter_limit_of_one_s_own_may_be_the_cause_too(tiny_bert: Path) -> None:
    claim = score(tiny_bert)["sample"]
    found = sb.diagnose(sb.load(tiny_bert, device="cpu", max_length=8), claim, tasks="sample", lengths=[64])
    assert best_changes(found) == {"max_length": "64"}


def test_scaling_to_unit_length_is_told_from_the_distance_alone(tiny_bert: Path) -> None:
    encoder = sb.load(tiny_bert, device="cpu")
    embedded, pairs = embed(encoder, _sample_sides()), load_sample().pairs
    vectors = embedded.vectors["avg"] / np.linalg.norm(embedded.vectors["avg"], axis=1, keepdims=True)
    left, right = np.split(vectors[embedded.rows], 2)
    distances = -np.abs(left.astype(float) - right).sum(axis=1)
    claim = 100 * np.corrcoef(pairs["gold"], distances)[0, 1]
    found = sb.diagnose(encoder, f"{claim:.4f}%", tasks="sample", further=0)
    assert best_changes(found) == {"metric": "pearson", "comparison": "manhattan, scaled to unit length"}
    assert found.search.explanations[0].best.count == 3
    assert (
        "`stsbench run` gives it with `--tasks sample --metric pearson --similarity manhattan --normalize`."
        in (found.remarks)
    )


def test_a_number_that_nothing_gives_is_reported_as_such(tiny_bert: Path) -> None:
    found = sb.diagnose(sb.load(tiny_bert, device="cpu"), "99.99", tasks="sample", further=0)
    assert not found.explained
    assert found.search.explanations == ()
    assert found.verdict.startswith(f"None of {found.search.settings:,} settings gives your 99.99 on sample.")
    highest = found.frame["score"].max()
    assert found.search.nearest.scores[0] == pytest.approx(highest)


def test_one_forward_pass_serves_all_poolers(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, passed = sb.load(tiny_bert, device="cpu"), []
    forward = encoder.forward

    def counted(sequences: Any, poolings: Any) -> Any:
        passed.extend(sequences)
        assert len(poolings) == 8
        return forward(sequences, poolings)

    monkeypatch.setattr(encoder, "forward", counted)
    found = sb.diagnose(encoder, "50.00", tasks="sample", lengths=[], use_cache=False, further=0)
    assert len(passed) == len(set(passed)) == found.encoding["encoded"]


def test_other_maximum_lengths_encode_longer_sentences_only(tiny_bert: Path) -> None:
    encoder = sb.load(tiny_bert, device="cpu")
    plain = sb.diagnose(encoder, "50.00", tasks="sample", lengths=[], use_cache=False, further=0)
    cut = sb.diagnose(encoder, "50.00", tasks="sample", lengths=[40, 1000], use_cache=False, further=0)
    lengths = [len(sequence) for sequence in set(encoder.tokenize(_sample_sides()).sequences)]
    again = cut.encoding["encoded"] - plain.encoding["encoded"]
    # Those within a few special tokens of the limit are looked at too.
    assert 0 < sum(length > 40 for length in lengths) <= again <= sum(length > 32 for length in lengths)
    assert again < len(lengths) / 2
    assert [a.values for a in cut.grid.axes if a.name == "max_length"] == [(64, 40)], "no position beyond 64"


def test_a_second_claim_encodes_nothing(tiny_bert: Path) -> None:
    encoder = sb.load(tiny_bert, device="cpu")
    first = sb.diagnose(encoder, "50.00", tasks="sample", lengths=[8], further=0)
    second = sb.diagnose(sb.load(tiny_bert, device="cpu"), "60.00", tasks="sample", lengths=[8], further=0)
    assert first.encoding["encoded"] > second.encoding["encoded"] == 0
    assert first.frame.equals(second.frame)


def test_a_checkpoint_without_a_head_lacks_that_pooler_and_says_so(tiny_bert: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "headless"
    folder.mkdir()
    for path in tiny_bert.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    weights = {
        name: value for name, value in load_file(folder / "model.safetensors").items() if "pooler" not in name
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    found = sb.diagnose(sb.load(folder, device="cpu"), "50.00", tasks="sample", further=0)
    assert "cls" not in found.search.grid.axes[0].values
    assert any("Not tried: pooling cls needs a trained dense+tanh head" in note for note in found.notes)


def test_what_goes_wrong_while_a_model_is_read_is_no_lack_of_a_head(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, tried = encoding.embed, []

    def fails_once(*arguments: Any, **options: Any) -> Any:
        tried.append(options["poolings"])
        if len(tried) == 1:
            raise UserError("cannot read config.json (Input/output error): allow reading it.")
        return whole(*arguments, **options)

    monkeypatch.setattr(encoding, "embed", fails_once)
    with pytest.raises(UserError, match="Input/output error"):
        sb.diagnose(sb.load(tiny_bert, device="cpu"), "50.00", tasks="sample", further=0)


def test_a_callable_has_a_smaller_grid_and_it_says_so(hash_encode: Callable[..., Any]) -> None:
    wanted = sb.evaluate(hash_encode, "sample", protocol=sb.protocol(aggregation="mean"), intervals=NO_INTERVALS)
    found = sb.diagnose(hash_encode, 100 * (wanted.scores[0].value or 0), tasks="sample")
    assert best_changes(found) == {"aggregation": "mean"}
    assert any("has no poolers or maximum lengths to choose from" in note for note in found.notes)


def test_an_encoder_that_has_no_score_is_told_so() -> None:
    with pytest.raises(sb.UserError, match="sample: this encoder has no score in your own setting"):
        sb.diagnose(lambda sentences: np.ones((len(sentences), 3)), 50.0, tasks="sample")


def test_pairs_of_one_s_own_are_diagnosed_too(
    hash_encode: Callable[..., Any], tmp_path: Path, toy_data: Any
) -> None:
    toy_data(pairs=40).pairs.rename(columns={"gold": "score"}).to_csv(tmp_path / "mine.csv", index=False)
    wanted = sb.evaluate(hash_encode, data=tmp_path / "mine.csv", protocol=sb.protocol(metric="pearson"))
    found = sb.diagnose(hash_encode, f"{100 * (wanted.scores[0].value or 0):.4f}", data=tmp_path / "mine.csv")
    assert best_changes(found) == {"metric": "pearson"}
    with pytest.raises(UserError, match="a claim about data of your own is one number"):
        sb.diagnose(hash_encode, "STS16=50", data=tmp_path / "mine.csv")


def test_saved_vectors_of_the_test_split_alone_are_enough_and_it_says_what_is_missing(
    hash_encode: Callable[..., Any], benchmark_folder: Path, tmp_path: Path
) -> None:
    pairs = load_sts("STS-B", data_dirs=[benchmark_folder]).pairs
    texts = sorted({*pairs["sentence1"], *pairs["sentence2"]})
    np.save(tmp_path / "v.npy", hash_encode(texts))
    (tmp_path / "s.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    record = sb.evaluate(
        hash_encode, "STS-B", protocol=sb.protocol(metric="pearson"), data_dirs=[benchmark_folder]
    )
    claim = f"STS-B={100 * (record.scores[0].value or 0):.4f}%"
    saved = sb.SavedVectors(tmp_path / "v.npy", tmp_path / "s.txt")
    found = sb.diagnose(saved, claim, data_dirs=[benchmark_folder])
    assert best_changes(found) == {"metric": "pearson"}
    assert any("Not tried: other splits and texts" in note for note in found.notes)
    (tmp_path / "s.txt").write_text("\n".join([*texts[1:], "something else"]) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="lacks 1 of the"):
        sb.diagnose(sb.SavedVectors(tmp_path / "v.npy", tmp_path / "s.txt"), claim, data_dirs=[benchmark_folder])


@pytest.mark.parametrize("split", ["dev", "all"])
@pytest.mark.parametrize("task", ["STS-B", "SICK-R"])
def test_another_split_is_found(tiny_bert: Path, benchmark_folder: Path, task: str, split: str) -> None:
    claim = score(tiny_bert, f"{task}:{split}", data=benchmark_folder)[task]
    found = sb.diagnose(tiny_bert, f"{task}={claim}", data_dirs=[benchmark_folder])
    assert best_changes(found) == {f"{task} split": split}


def test_raw_text_is_found_and_its_absence_noted(tiny_bert: Path, benchmark_folder: Path) -> None:
    claim = score(tiny_bert, "STS16", data=benchmark_folder, text="raw")["STS16"]
    found = sb.diagnose(tiny_bert, f"STS16={claim}", data_dirs=[benchmark_folder])
    assert best_changes(found) == {"text": "raw"}
    (benchmark_folder / "sts-raw").rename(benchmark_folder / "away")
    again = sb.diagnose(tiny_bert, f"STS16={claim}", data_dirs=[benchmark_folder], further=0)
    assert "Not tried, as it was not found: STS16 (raw)." in again.notes


def test_the_average_of_all_tasks_and_what_people_take_for_it(tiny_bert: Path, benchmark_folder: Path) -> None:
    encoder, scores = sb.load(tiny_bert, device="cpu"), score(tiny_bert, "sts", data=benchmark_folder)
    rounded = np.mean([round(number(value), 2) for task, value in scores.items() if task != "Avg."])
    six = np.mean([number(value) for task, value in scores.items() if task not in {"Avg.", "SICK-R"}])
    sample = number(score(tiny_bert)["sample"])
    for claim, average in (
        (number(scores["Avg."]), None),
        (rounded, "of rounded scores"),
        (six, "without SICK-R"),
        (number(scores["STS15"]), "STS15 alone"),
        (sample, "sample"),
    ):
        found = sb.diagnose(encoder, f"{claim:.6f}%", data_dirs=[benchmark_folder], tolerance=1e-5)
        assert best_changes(found) == ({} if average is None else {"average": average})
    assert "The sample comes with stsbench and is measured where no data is found." in found.remarks


def test_values_taken_with_one_other_pooler_are_explained_together(
    tiny_bert: Path, benchmark_folder: Path
) -> None:
    scores = score(tiny_bert, "sts", data=benchmark_folder, pooling="cls_before_pooler")
    found = sb.diagnose(
        tiny_bert, ",".join(f"{task}={value}" for task, value in scores.items()), data_dirs=[benchmark_folder]
    )
    assert best_changes(found) == {"pooling": "cls_before_pooler"}
    assert found.search.chance(1) < 1e-6
    del scores["Avg."]
    alone = ",".join(f"{task}={value}" for task, value in scores.items())
    assert best_changes(sb.diagnose(tiny_bert, alone, data_dirs=[benchmark_folder])) == best_changes(found)


def test_the_trained_regressor_is_tried_on_request_and_pointed_at_otherwise(
    tiny_bert: Path, benchmark_folder: Path
) -> None:
    data = load_sts("SICK-R", "all", data_dirs=[benchmark_folder])
    embedded = embed(sb.load(tiny_bert, device="cpu"), [*data.pairs["sentence1"], *data.pairs["sentence2"]])
    left, right = np.split(embedded.vectors["avg"][embedded.rows], 2)
    result = regress(data, left, right)
    on_test = scores_on_test(result.predicted, data.pairs["gold"][result.tested])
    claim = f"SICK-R={100 * on_test['pearson']:.4f}%"
    without = sb.diagnose(tiny_bert, claim, data_dirs=[benchmark_folder], tolerance=1e-4, further=0)
    assert not without.explained
    assert any("--supervised" in note for note in without.notes)
    found = sb.diagnose(tiny_bert, claim, data_dirs=[benchmark_folder], tolerance=1e-4, supervised=True)
    assert best_changes(found) == {"metric": "pearson", "comparison": "supervised"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"claim": "50", "tasks": "sample,STS16"}, "the sample is part of no average"),
        ({"claim": "50", "tasks": ","}, "no task was named"),
        (
            {"claim": "avg=50,STS16=60", "tasks": "STS12,STS13"},
            "the claim names STS16, which is not among the tasks",
        ),
        ({"claim": "50", "protocol": sb.protocol(metric="kendall")}, "diagnose compares by spearman and pearson"),
        ({"claim": "STS16=50"}, "STS16 was not found in"),
    ],
)
def test_mistakes_are_told_before_anything_is_encoded(arguments: dict[str, Any], message: str) -> None:
    def never(_sentences: list[str]) -> None:
        pytest.fail("encoded")

    with pytest.raises(UserError, match=message):
        sb.diagnose(never, **arguments)
