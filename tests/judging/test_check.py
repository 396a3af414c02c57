"""Runs against published rows: which rows, verdicts and notes."""

from collections.abc import Callable
from typing import Any

import pytest

import stsbench as sb
from stsbench.encoders.template import read_template
from stsbench.encoders.use import Use
from stsbench.judging.published import check_published, rows_to_check
from stsbench.judging.verdicts import Check
from stsbench.published.catalogue import checkpoints, row, seeds
from stsbench.records.parts import DataPart, Number, Score, Training
from stsbench.records.signature import Signature

MakeRun = Callable[..., sb.RunRecord]
Printed = Callable[[str], dict[str, float]]

SIMCSE = "esimcse-coling2022-3/unsup-simcse-bert-base"
TRANSFER = "mocose-acl2022-2/unsup-simcse-bert-base"
MINILM = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"
AVG = {"pooling": "avg"}
BERT = {"name": "bert-base-uncased"}
FIRST_LAST = "simcse-slides-sts/bert-base-first-last"
STSB = {"STS-B": 76.85}
STS = {"STS-B": 50.0}
SUP = [f"simcse-slides-{table}/sup-simcse-bert-base" for table in ("sts", "transfer")]
WEIGHTS = checkpoints()["all-minilm-l6-v2"].weights_sha256
TOKENIZER = checkpoints()["all-minilm-l6-v2"].tokenizer_sha256


def check(run: sb.RunRecord, name: str = SIMCSE, tolerance: float = 0.05) -> Check:
    return check_published(run, [row(name)], tolerance)


def test_the_printed_scores_pass_and_one_that_is_off_fails_with_the_average(
    make_run: MakeRun, printed: Printed
) -> None:
    result = check(make_run(printed(SIMCSE)))
    assert (result.verdict, result.exit_code, result.passed) == ("pass", 0, True)
    tasks = [cell.name for cell in result.of("pass")]
    assert tasks == ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg."]
    assert result.frame["difference"].abs().max() < 0.006
    result = check(make_run(printed(SIMCSE) | {"STS12": 67.4}))
    assert (result.verdict, result.exit_code) == ("fail", 1)
    assert [cell.signed for cell in result.of("fail")] == ["STS12 -1.00", "Avg. -0.14"]


@pytest.mark.parametrize(
    ("score", "name", "tolerance", "verdict"),
    [
        (76.899, SIMCSE, 0.05, "pass"),
        (76.801, SIMCSE, 0.05, "pass"),
        (76.799, SIMCSE, 0.05, "fail"),
        (None, SIMCSE, 0.05, "fail"),
        # Printed as 79.1: what rounds to it passes at any tolerance.
        (79.149, "simcse-slides-augmentations/none", 0.0, "pass"),
        (79.151, "simcse-slides-augmentations/none", 0.0, "fail"),
    ],
)
def test_the_tolerance(score: float, name: str, tolerance: float, verdict: str, make_run: MakeRun) -> None:
    split = "dev" if "slides" in name else "test"
    assert check(make_run({"STS-B": score}, split=split), name, tolerance).verdict == verdict


@pytest.mark.parametrize(
    ("field", "made", "model"),
    [
        ("split", {"split": "dev"}, {}),
        ("aggregation", {"aggregation": "wmean"}, {}),
        ("metric", {"metric": "pearson"}, {}),
        ("similarity", {"similarity": "dot"}, {}),
        ("text", {"text": "raw"}, {}),
        ("data", {"status": "modified"}, {}),
        ("data", {"status": "user"}, {}),
        ("pooling", {}, AVG),
        ("max_length", {"truncated": 1}, {"max_length": 32}),
    ],
)
def test_another_choice_is_not_comparable(field: str, made: Any, model: Any, make_run: MakeRun) -> None:
    result = check(make_run({"STS12": 68.40}, model, **made))
    assert (result.verdict, result.exit_code) == ("not comparable", 2)
    (cell,) = result.of("not comparable")
    assert [difference.field for difference in cell.differences] == [field]
    assert cell.difference is None
    assert field in result.sentence
    assert result.to_dict()["cells"][0]["differences"][0]["field"] == field


def test_the_comparable_one_of_two_measurements_counts(make_run: MakeRun, printed: Printed) -> None:
    run = make_run(printed(MINILM), AVG)
    result = check(run, MINILM)
    assert [cell.name for cell in result.of("not comparable")] == ["SICK-R"]
    assert (len(result.of("pass")), result.exit_code) == (5, 2)
    assert result.sentence.startswith("5 of 5 comparable scores are within 0.05 of")
    assert "--tasks SICK-R:all" in result.sentence
    both = make_run({"SICK-R": printed(MINILM)["SICK-R"]}, AVG, split="all")
    merged = run.model_copy(update={"scores": (*run.scores, *both.scores)})
    assert check(merged, MINILM).verdict == "pass"


def test_what_was_not_measured_is_listed(make_run: MakeRun) -> None:
    # Of a single subset every aggregation is the same number.
    result = check(make_run(STSB, aggregation="wmean"))
    assert (result.verdict, len(result.of("not measured"))) == ("pass", 7)
    nothing = check(make_run({"sample": 50.0}))
    assert (nothing.verdict, nothing.exit_code) == ("not comparable", 2)


def test_rows_of_groups_counts_and_missing_values(make_run: MakeRun, printed: Printed) -> None:
    group = check(make_run({"STS12": 72.98}), "esimcse-arxiv-v1-1/sts12")
    assert group.cells[0].differences[0].field == "group"
    run = make_run(printed(SIMCSE))
    missing = check(run, "mocose-acl2022-6/batch-512")
    assert [cell.verdict for cell in missing.cells] == ["no value"]
    assert any("70.62 and 76.62 are both possible" in note for note in missing.notes)
    counts = check(run, "esimcse-arxiv-v1-3/test")
    assert (counts.cells, counts.exit_code, len(counts.frame)) == ((), 2, 0)
    assert check(run, "esimcse-arxiv-v1-5/unsup-simcse-bert-base").cells[-1].name == "Avg."


# Model and protocol of a run, the row, and the start of a note; a tuple for no such note.
NOTES = [
    ({}, {}, SIMCSE, "aggregation"),
    ({}, {}, SIMCSE, ("prompt", "attention", "template", "precision")),
    ({"max_length": 128}, {}, SIMCSE, ("max_length",)),
    (AVG, {}, "mirror-bert", "pooling"),
    ({"kind": "function", "pooling": "own"}, {}, SIMCSE, "pooling"),
    ({"pooling": "avg_first_last"}, {"split": "dev"}, "simcse-slides-pooling-and-mlm/first-last", "pooling"),
    ({"prompt": "query: "}, {}, SIMCSE, "prompt: the published row mentions no prompt"),
    ({"whiten": 0}, {}, SIMCSE, "postprocessing"),
    ({"template": read_template("promptbert")}, {}, SIMCSE, "template"),
    ({"precision": "bf16"}, {}, SIMCSE, "precision"),
    ({"pooling": "last", "precision": "fp32"}, {}, "prompteol", "precision: the row uses fp16"),
    ({"pooling": "last", "precision": "fp16"}, {}, "prompteol", ("precision",)),
    (AVG | {"weights_sha256": WEIGHTS}, {}, MINILM, "weights are the same"),
    (AVG | {"weights_sha256": "0" * 64}, {}, MINILM, "weights differ"),
    (AVG | {"weights_sha256": WEIGHTS, "tokenizer_sha256": TOKENIZER}, {}, MINILM, "weights and tokenizer's"),
]


@pytest.mark.parametrize(("model", "made", "name", "note"), NOTES, ids=[str(n) for n in range(len(NOTES))])
def test_what_is_unstated_or_unusual_is_noted(
    model: dict[str, Any], made: dict[str, Any], name: str, note: str | tuple[str, ...], make_run: MakeRun
) -> None:
    notes = check(make_run({"STS-B": 76.4, "STS12": 68.0}, model, **made), name).notes
    assert len(notes) <= 3
    settings = "; ".join(notes).split("; ")
    if isinstance(note, tuple):
        assert not [text for text in settings if text.startswith(note)]
    else:
        assert [text for text in settings if text.startswith(note)], notes


def test_the_place_among_known_seeds(make_run: MakeRun, printed: Printed) -> None:
    scores = printed(SIMCSE) | {"STS12": 66.0}
    result = check(make_run(scores))
    known, average = seeds("unsup-simcse-bert-base"), sum(scores.values()) / 7
    assert result.cells[-1].seeds_below == float((known["Avg."] < average).mean())
    assert result.cells[0].seeds_below == float((known["STS12"] < 66.0).mean())
    assert result.frame["seeds below"].iloc[-1] == f"{100 * (known['Avg.'] < average).mean():.0f} %"
    other = check(make_run(printed("esimcse-bert-base")), "esimcse-bert-base")
    assert "seeds below" not in other.frame
    both = [row(SIMCSE), row("esimcse-arxiv-v1-5/unsup-simcse-bert-base")]
    result = check_published(make_run(printed(SIMCSE)), both)
    assert (result.frame["row"].nunique(), len(result.cells)) == (2, 16)


def transfer_run(make_run: MakeRun, off: float = 0.0) -> sb.RunRecord:
    """Returns a record of SimCSE's accuracies on the transfer tasks; on dev they are two points higher."""
    scores = []
    for cell in row(TRANSFER).cells[:7]:
        acc, task = ((cell.score or 0) + off) / 100, cell.setting.task
        signature = Signature(task, "test", "kfold10", "acc", "logreg", "senteval", "3f2a91", Use(pooling="cls"))
        score = Score(
            kind="transfer",
            task=task,
            split="test",
            text="senteval",
            numbers=(Number(statistic="acc", value=acc), Number(statistic="devacc", value=acc + 0.02)),
            signature=str(signature),
            training=Training(method="logreg", design="kfold", kfold=10, seed=1111),
            data=DataPart(status="verified", sha256="3f2a91"),
        )
        scores.append(score)
    return make_run(STSB).model_copy(update={"scores": tuple(scores)})


def test_transfer_tasks_are_checked_on_test_or_dev(make_run: MakeRun) -> None:
    run = transfer_run(make_run)
    result = check(run, TRANSFER)
    assert (result.verdict, len(result.of("pass"))) == ("pass", 8)
    assert "classifier: " in result.notes[0]
    assert check(transfer_run(make_run, 0.5), TRANSFER).verdict == "fail"
    dev = check(run, "simcse-slides-pooling-and-mlm/mlm-0.01")
    mean = sum(score.numbers[1].value or 0 for score in run.scores) / 7
    assert next(cell.measured for cell in dev.cells if cell.name == "transfer") == pytest.approx(100 * mean)


@pytest.mark.parametrize(
    ("against", "model", "tasks", "rows"),
    [
        ("auto", {"name": "princeton-nlp/unsup-simcse-bert-base-uncased"}, STS, [SIMCSE]),
        ("auto", {"name": "sentence-transformers/all-MiniLM-L6-v2"}, STS, [MINILM]),
        ("auto", BERT | {"pooling": "avg_static_last"}, STS, [FIRST_LAST]),
        ("auto", BERT | AVG, {"MR": 50.0}, ["simcse-slides-transfer/bert-base-avg"]),
        ("sup-simcse-bert-base", {}, STS, SUP[:1]),
        ("sup-simcse", {}, {"MR": 50.0}, SUP[1:]),
        ("sup-simcse", {}, {"STS-B": 50.0, "MR": 50.0}, SUP),
        ("sup-simcse", {}, {"sample": 50.0}, SUP[:1]),
        (SUP[0], {}, {"MR": 50.0}, SUP[:1]),
    ],
)  # fmt: skip
def test_the_rows_to_check(
    against: str, model: dict[str, str], tasks: dict[str, float], rows: list[str], make_run: MakeRun
) -> None:
    assert [row.name for row in rows_to_check(make_run(tasks, model), against)] == rows


@pytest.mark.parametrize(
    ("model", "against", "fragment"),
    [
        ("me/mine", "auto", "no published row is known for me/mine"),
        ("somebody/esimcse-bert-base-uncased", "auto", "named like esimcse-bert-base"),
        ("princeton-nlp/sup-simcse-bert-large-uncased", "auto", "no row of sup-simcse-bert-large"),
        ("mine", "esimcse-bert-bas", "did you mean esimcse-bert-base"),
    ],
)
def test_unknown_rows(model: str, against: str, fragment: str, make_run: MakeRun) -> None:
    with pytest.raises(sb.UserError, match=fragment):
        rows_to_check(make_run(STS, {"name": model}), against)
    with pytest.raises(sb.UserError, match="tolerance of nan"):
        check(make_run(STSB), tolerance=float("nan"))
