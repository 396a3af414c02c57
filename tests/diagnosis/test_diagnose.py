"""`diagnose`: a score taken with another choice is traced back to that choice, and nothing is encoded twice."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample
from stsbench.diagnosis.result import Diagnosis


def score(folder: Path, tasks: str = "sample", *, data: Path | None = None, **choices: Any) -> dict[str, str]:
    """Return the scores of a plain run with other choices as claims, to six digits."""
    use = {name: choices.pop(name) for name in ("pooling", "max_length", "normalize") if name in choices}
    encoder, dirs = sb.load(folder, device="cpu", **use), [data] if data else []
    how = {"protocol": sb.protocol(**choices), "intervals": sb.Intervals(None), "use_cache": False}
    record = sb.evaluate(encoder, tasks, data_dirs=dirs, **how)
    found = {task.task: f"{100 * (task.value or 0):.6f}%" for task in record.scores}
    if record.averages:
        found["Avg."] = f"{100 * (record.averages[0].value or 0):.6f}%"
    return found


def number(claim: str) -> float:
    return float(claim.removesuffix("%"))


def best_changes(diagnosis: Diagnosis) -> dict[str, str]:
    return diagnosis.search.explanations[0].choices


def on_sample(encoder: Any, claim: Any, **options: Any) -> Diagnosis:
    return sb.diagnose(encoder, claim, tasks="sample", budget=0, **options)


@pytest.mark.parametrize(
    "choice",
    [
        *(
            {"pooling": name}
            for name in ("cls", "cls_before_pooler", "avg_top2", "avg_static_last", "max", "last")
        ),
        {"aggregation": "mean"},
        {"metric": "pearson"},
        {"similarity": "dot"},
        {"similarity": "manhattan", "metric": "pearson", "normalize": True},
        {"max_length": 8},
        {"pooling": "cls", "aggregation": "mean", "similarity": "dot"},
    ],
    ids=lambda choice: ", ".join(map(str, choice.values())),
)
def test_a_score_is_traced_back_to_the_choices_that_it_was_taken_with(
    tiny_bert: Path, choice: dict[str, Any]
) -> None:
    claim = score(tiny_bert, **choice)["sample"]
    found = on_sample(sb.load(tiny_bert, device="cpu"), claim, lengths=[8, 12], tolerance=0.001)
    assert best_changes(found) == {name: str(value) for name, value in choice.items()}
    assert found.search.explanations[0].distance < 1e-3


def test_your_own_setting_is_the_default(tiny_bert: Path) -> None:
    own, protocol = sb.load(tiny_bert, device="cpu", pooling="cls", max_length=8), sb.protocol("senteval")
    for pooling, expected in (("cls", {}), ("avg", {"pooling": "avg"})):
        claim = score(tiny_bert, pooling=pooling, max_length=8, aggregation="wmean")["sample"]
        assert best_changes(on_sample(own, claim, protocol=protocol)) == expected
    claim = score(tiny_bert)["sample"]
    short = sb.load(tiny_bert, device="cpu", max_length=8)
    assert best_changes(on_sample(short, claim, lengths=[64])) == {"max_length": "64"}


def test_one_forward_pass_gives_all_poolings_and_a_second_claim_encodes_nothing(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, passed = sb.load(tiny_bert, device="cpu"), []
    forward = encoder.forward

    def counted(sequences: Any, poolings: Any) -> Any:
        passed.extend(sequences)
        assert len(poolings) == 8
        return forward(sequences, poolings)

    monkeypatch.setattr(encoder, "forward", counted)
    first = on_sample(encoder, "50.00", lengths=[])
    assert len(passed) == len(set(passed)) == first.encoding["encoded"]
    second = on_sample(sb.load(tiny_bert, device="cpu"), "60.00", lengths=[])
    assert second.encoding["encoded"] == 0
    assert first.frame.equals(second.frame)


def test_another_maximum_length_encodes_only_what_it_changes(tiny_bert: Path) -> None:
    encoder = sb.load(tiny_bert, device="cpu", max_length=20)
    plain = on_sample(encoder, "50.00", lengths=[], use_cache=False)
    found = on_sample(encoder, "50.00", lengths=[32, 40, 1000], use_cache=False)
    pairs = load_sample().pairs
    texts = [*pairs["sentence1"], *pairs["sentence2"]]
    lengths = np.array([len(ids) for ids in {*sb.load(tiny_bert, max_length=64).tokenize(texts).sequences}])
    # At each length, what the shorter one cuts.
    cut = (lengths > 20).sum() + (lengths > 32).sum()
    assert found.encoding["encoded"] - plain.encoding["encoded"] == cut
    whole = on_sample(sb.load(tiny_bert, device="cpu", max_length=40), "50.00", lengths=[])
    at_40 = found.frame[found.frame["max_length"] == "40"]["score"].to_numpy()
    assert at_40 == pytest.approx(whole.frame["score"].to_numpy(), abs=0.02)


@pytest.mark.parametrize(
    ("file", "key"),
    [("tokenizer_config.json", "model_max_length"), ("sentence_bert_config.json", "max_seq_length")],
)
def test_a_length_that_a_file_of_the_checkpoint_states_is_tried(
    tiny_bert: Path, tmp_path: Path, file: str, key: str
) -> None:
    path = Path(shutil.copytree(tiny_bert, tmp_path / "cut")) / file
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(content | {key: 5}), encoding="utf-8")
    claim = score(tiny_bert, max_length=5)["sample"]
    found = on_sample(sb.load(path.parent, device="cpu", max_length=64), claim)
    assert best_changes(found) == {"max_length": "5"}
    assert f"5 sub-words is the limit in {key} of {file}" in " ".join(found.remarks)


def test_a_callable_and_your_own_pairs_are_diagnosed(
    hash_encode: Callable[..., Any], tmp_path: Path, toy_data: Any
) -> None:
    mine = tmp_path / "mine.csv"
    toy_data(pairs=40).pairs.rename(columns={"gold": "score"}).to_csv(mine, index=False)
    record = sb.evaluate(hash_encode, data=mine, protocol=sb.protocol(metric="pearson"))
    found = sb.diagnose(hash_encode, f"{100 * (record.scores[0].value or 0):.4f}", data=mine)
    assert best_changes(found) == {"metric": "pearson"}
    assert any("has no poolings or maximum lengths to choose from" in note for note in found.notes)
    with pytest.raises(UserError, match="a claim about your own data is a single number"):
        sb.diagnose(hash_encode, "STS16=50", data=mine)


def test_another_split_and_text_are_found(tiny_bert: Path, benchmark_folder: Path) -> None:
    for task, split in (("STS-B", "dev"), ("SICK-R", "all")):
        claim = score(tiny_bert, f"{task}:{split}", data=benchmark_folder)[task]
        found = sb.diagnose(tiny_bert, f"{task}={claim}", data_dirs=[benchmark_folder])
        assert best_changes(found) == {f"{task} split": split}
    claim = score(tiny_bert, "STS16", data=benchmark_folder, text="raw")["STS16"]
    found = sb.diagnose(tiny_bert, f"STS16={claim}", data_dirs=[benchmark_folder])
    assert best_changes(found) == {"text": "raw"}
    (benchmark_folder / "sts-raw").rename(benchmark_folder / "away")
    again = sb.diagnose(tiny_bert, f"STS16={claim}", data_dirs=[benchmark_folder], budget=0)
    assert "Not tried, because it was not found: STS16 (raw)." in again.notes


def test_averages_and_several_numbers_are_explained(tiny_bert: Path, benchmark_folder: Path) -> None:
    encoder, dirs = sb.load(tiny_bert, device="cpu"), [benchmark_folder]
    scores = score(tiny_bert, "sts", data=benchmark_folder)
    tasks = {task: number(value) for task, value in scores.items() if task != "Avg."}
    six = [value for task, value in tasks.items() if task != "SICK-R"]
    for claim, average in (
        (number(scores["Avg."]), None),
        (np.mean([round(value, 2) for value in tasks.values()]), "of rounded scores"),
        (np.mean(six), "without SICK-R"),
        (tasks["STS15"], "STS15 alone"),
    ):
        found = sb.diagnose(encoder, f"{claim:.6f}%", data_dirs=dirs, tolerance=1e-5)
        assert best_changes(found) == ({} if average is None else {"average": average})
    others = score(tiny_bert, "sts", data=benchmark_folder, pooling="cls_before_pooler")
    for left_out in ("", "Avg."):
        claim = ",".join(f"{task}={value}" for task, value in others.items() if task != left_out)
        found = sb.diagnose(encoder, claim, data_dirs=dirs)
        assert best_changes(found) == {"pooling": "cls_before_pooler"}
        assert found.search.chance(1) < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"claim": "50", "tasks": "sample,STS16"}, "the sample is not part of any average"),
        ({"claim": "50", "tasks": ","}, "no task is given"),
        ({"claim": "avg=50,STS16=60", "tasks": "STS12,STS13"}, "the claim names STS16, which is not among"),
        ({"claim": "50", "protocol": sb.protocol(metric="kendall")}, "diagnose compares by spearman and pearson"),
        ({"claim": "STS16=50"}, "STS16 was not found in"),
        ({"claim": "50", "budget": -1.0}, "a budget of -1 seconds"),
    ],
)
def test_mistakes_are_reported_before_anything_is_encoded(arguments: dict[str, Any], message: str) -> None:
    def never(_sentences: list[str]) -> None:
        pytest.fail("encoded")

    with pytest.raises(UserError, match=message):
        sb.diagnose(never, **arguments)
    with pytest.raises(UserError, match="sample: this encoder has no score in your own setting"):
        sb.diagnose(lambda sentences: np.ones((len(sentences), 3)), 50.0, tasks="sample")
