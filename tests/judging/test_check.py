"""A run against published rows: what passes, what fails, what does not compare, and what is only noted."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders.template import read_template
from stsbench.encoders.use import Use
from stsbench.judging.published import check_published
from stsbench.judging.verdicts import Check
from stsbench.published.catalogue import checkpoints, row
from stsbench.published.measured import seeds
from stsbench.records.parts import DataPart, Number, Score, Training
from stsbench.records.signature import Signature

MakeRun = Callable[..., sb.RunRecord]
Printed = Callable[[str], dict[str, float]]

SIMCSE = "esimcse-coling2022-3/unsup-simcse-bert-base"
TRANSFER = "mocose-acl2022-2/unsup-simcse-bert-base"
MINILM = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"


def check(run: sb.RunRecord, name: str = SIMCSE, tolerance: float = 0.05) -> Check:
    return check_published(run, [row(name)], tolerance)


def test_the_printed_scores_themselves_pass_cell_by_cell_and_on_average(
    make_run: MakeRun, printed: Printed
) -> None:
    found = check(make_run(printed(SIMCSE)))
    assert (found.verdict, found.exit_code) == ("pass", 0)
    assert [cell.name for cell in found.of("pass")] == [
        "STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.",
    ]  # fmt: skip
    assert found.frame["difference"].abs().max() < 0.006
    assert found.sentence == f"pass: mine is within 0.05 of {SIMCSE}: 8 of 8 scores."


@pytest.mark.parametrize(
    ("off", "verdict", "code"), [(0.049, "pass", 0), (-0.049, "pass", 0), (-0.051, "fail", 1)]
)
def test_a_score_passes_within_the_tolerance_on_either_side(
    off: float, verdict: str, code: int, make_run: MakeRun
) -> None:
    found = check(make_run({"STS-B": 76.85 + off}))
    assert (found.verdict, found.exit_code) == (verdict, code)


def test_a_failure_names_the_scores_that_are_off_and_by_how_much(make_run: MakeRun, printed: Printed) -> None:
    found = check(make_run(printed(SIMCSE) | {"STS12": 67.4}))
    assert [cell.name for cell in found.of("fail")] == ["STS12", "Avg."]
    assert found.sentence == f"fail: mine is not within 0.05 of {SIMCSE}: 2 of 8 scores: STS12 -1.00, Avg. -0.14."


def test_what_prints_as_the_published_value_passes_at_any_tolerance(make_run: MakeRun) -> None:
    coarse = "simcse-slides-augmentations/none"
    assert row(coarse).cells[0].printed == "79.1"
    assert check(make_run({"STS-B": 79.149}, split="dev"), coarse, 0).verdict == "pass"
    assert check(make_run({"STS-B": 79.151}, split="dev"), coarse, 0).verdict == "fail"


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
        ("pooling", {}, {"pooling": "avg"}),
        ("max_length", {"truncated": 1}, {"max_length": 32}),
    ],
)
def test_what_was_taken_otherwise_does_not_compare_and_the_field_is_named(
    field: str, made: dict[str, Any], model: dict[str, Any], make_run: MakeRun
) -> None:
    found = check(make_run({"STS12": 68.40}, model, **made))
    assert (found.verdict, found.exit_code) == ("not comparable", 2)
    (cell,) = found.of("not comparable")
    assert [difference.field for difference in cell.differences] == [field]
    assert cell.difference is None
    assert f"{field} is " in found.sentence


def test_over_a_single_subset_the_aggregation_is_no_difference(make_run: MakeRun) -> None:
    assert check(make_run({"STS-B": 76.85}, aggregation="wmean")).verdict == "pass"


def test_sick_r_on_its_test_split_does_not_compare_with_mteb_and_the_rest_does(
    make_run: MakeRun, printed: Printed
) -> None:
    found = check(make_run(printed(MINILM), {"pooling": "avg"}), MINILM)
    assert [cell.name for cell in found.of("not comparable")] == ["SICK-R"]
    assert len(found.of("pass")) == 5
    assert found.exit_code == 2
    assert "SICK-R: split is test here and all there (measure with --tasks SICK-R:all)" in found.sentence


def test_of_two_measurements_of_a_task_the_one_that_compares_is_taken(make_run: MakeRun, printed: Printed) -> None:
    run = make_run(printed(MINILM), {"pooling": "avg"})
    both = make_run({"SICK-R": printed(MINILM)["SICK-R"]}, {"pooling": "avg"}, split="all")
    merged = run.model_copy(update={"scores": (*run.scores, *both.scores)})
    assert check(merged, MINILM).verdict == "pass"


def test_tasks_that_were_not_measured_are_listed_and_do_not_fail(make_run: MakeRun) -> None:
    found = check(make_run({"STS-B": 76.85}))
    assert found.verdict == "pass"
    assert len(found.of("not measured")) == 7
    assert "7 could not be compared" in found.sentence
    average = found.cells[-1]
    assert (average.name, average.verdict) == ("Avg.", "not measured")
    assert average.reason == "not measured: STS12, STS13, STS14, STS15, STS16, SICK-R"


def test_nothing_in_common_is_no_pass(make_run: MakeRun) -> None:
    found = check(make_run({"sample": 50.0}))
    assert (found.verdict, found.exit_code) == ("not comparable", 2)
    assert "task: none of STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R, Avg. was measured" in found.sentence


def test_a_group_of_the_pairs_does_not_compare_with_all_of_them(make_run: MakeRun) -> None:
    found = check(make_run({"STS12": 72.98}), "esimcse-arxiv-v1-1/sts12")
    assert found.verdict == "not comparable"
    assert "length difference <= 3" in found.sentence


def test_a_cell_without_a_value_has_a_note_that_says_why(make_run: MakeRun, printed: Printed) -> None:
    found = check(make_run(printed(SIMCSE)), "mocose-acl2022-6/batch-512")
    assert [cell.verdict for cell in found.cells] == ["no value"]
    assert found.cells[0].reason == "the row has no value"
    assert any("70.62 and 76.62 are both possible" in note for note in found.notes)


def test_an_undefined_score_fails(make_run: MakeRun) -> None:
    found = check(make_run({"STS-B": None}))
    assert found.verdict == "fail"
    assert "STS-B undefined" in found.sentence


def test_what_the_paper_leaves_open_matches_with_a_note(make_run: MakeRun, printed: Printed) -> None:
    notes = check(make_run(printed(SIMCSE))).notes
    assert "text: the paper leaves it open; taken as senteval" in notes
    assert "aggregation (STS12, STS13, STS14, STS15, STS16): the paper leaves it open; taken as all" in notes


def test_a_row_of_averages_alone_tells_what_is_open_too(make_run: MakeRun, printed: Printed) -> None:
    run = make_run(printed(SIMCSE), {"pooling": "cls"})
    notes = check(run, "simcse-slides-overview/sup-simcse-bert-base").notes
    assert "text: the paper leaves it open; taken as senteval" in notes


def test_where_the_authors_code_fixes_what_the_paper_leaves_open_the_code_counts(make_run: MakeRun) -> None:
    (cell,) = check(make_run({"STS12": 68.40}, aggregation="wmean")).of("not comparable")
    assert "the paper leaves it open, its authors' code does not; measure with --aggregation all" in cell.reason


def test_what_nobody_states_matches_with_a_note(make_run: MakeRun) -> None:
    found = check(make_run({"STS12": 72.369}, {"pooling": "avg"}, text="raw"), MINILM)
    assert found.verdict == "pass"
    assert "text: the source does not state it; raw here" in found.notes


def test_a_shorter_length_that_cuts_nothing_is_only_noted(make_run: MakeRun) -> None:
    found = check(make_run({"STS-B": 76.85}, {"max_length": 128}))
    assert found.verdict == "pass"
    assert "max_length: 512 for the row; 128 here, where no sentence was cut" in found.notes


def test_a_pooling_that_no_document_gives_is_only_noted(make_run: MakeRun) -> None:
    found = check(make_run({"STS-B": 76.4}, {"pooling": "avg"}), "mirror-bert")
    assert found.verdict != "not comparable"
    assert "pooling: no document gives the row's, cls_before_pooler is likely; avg here" in found.notes


def test_how_a_callable_pools_is_not_known(make_run: MakeRun) -> None:
    found = check(make_run({"STS-B": 76.85}, {"kind": "function", "pooling": "own"}))
    assert found.verdict == "pass"
    assert "pooling: cls_before_pooler for the row; how mine pools is not known" in found.notes


def test_a_variant_of_a_system_states_no_pooling(make_run: MakeRun) -> None:
    found = check(
        make_run({"STS-B": 86.1}, {"pooling": "avg_first_last"}, split="dev"),
        "simcse-slides-pooling-and-mlm/first-last",
    )
    assert found.of("pass")
    assert any("a variant (pooling first-last) and states none" in note for note in found.notes)


def test_a_prompt_or_whitening_is_noted(make_run: MakeRun) -> None:
    notes = check(make_run({"STS-B": 76.85}, {"prompt": "query: ", "whiten": 0})).notes
    assert "prompt: the row states none; 'query: ' here" in notes
    assert "postprocessing: the row states none; whiten here" in notes


def test_prompts_of_sides_or_tasks_and_another_attention_are_noted(make_run: MakeRun) -> None:
    use = {"prompts": ("a: ", ""), "attention": "eager", "attention_mask": "causal"}
    notes = check(make_run({"STS-B": 76.85}, use)).notes
    assert "prompts: the row states none; 'a: ', '' here" in notes
    assert "attention: the row states none; eager here" in notes
    assert "attention_mask: the row states none; causal here" in notes
    plain = make_run({"STS12": 68.4, "STS13": 82.41})
    assert not [note for note in check(plain).notes if note.startswith(("prompt", "attention"))]
    # Where the text goes by task, the signatures alone say it.
    by_task = [
        score.model_copy(update={"signature": str(replace(signature, use=replace(signature.use, prompt=text)))})
        for score, signature, text in zip(plain.scores, plain.signatures, ("it is ", "a bird "), strict=True)
    ]
    notes = check(plain.model_copy(update={"scores": tuple(by_task)})).notes
    assert "prompt: the row states none; 'it is ', 'a bird ' here" in notes


@pytest.mark.parametrize(
    ("digest", "told"), [(None, ""), ("0" * 64, "other weights than the ones"), ("", "the ones")]
)
def test_where_the_row_names_its_weights_the_runs_are_compared(
    digest: str | None, told: str, make_run: MakeRun
) -> None:
    known = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    run = make_run({"STS-B": 82.03}, {"pooling": "avg", "weights_sha256": known if digest == "" else digest})
    notes = [note for note in check(run, MINILM).notes if note.startswith("weights: ")]
    assert [note.startswith(f"weights: {told}") for note in notes] == [True] * bool(told)


@pytest.mark.parametrize(("digest", "told"), [("0" * 64, "other files than the ones"), ("", "the ones")])
def test_where_the_row_names_its_tokenizer_the_runs_are_compared(
    digest: str, told: str, make_run: MakeRun
) -> None:
    known = checkpoints()["all-minilm-l6-v2"]
    model = {"weights_sha256": known.weights_sha256, "tokenizer_sha256": digest or known.tokenizer_sha256}
    notes = check(make_run({"STS-B": 82.03}, {"pooling": "avg", **model}), MINILM).notes
    assert any(note.startswith("weights: the ones") for note in notes)
    assert any(note.startswith(f"tokenizer's files: {told} that the row was taken with") for note in notes)


def test_the_verdict_says_where_the_run_lies_among_known_seeds(make_run: MakeRun, printed: Printed) -> None:
    scores = printed(SIMCSE) | {"STS12": 66.0}
    found = check(make_run(scores))
    known = seeds("unsup-simcse-bert-base")
    average = sum(scores.values()) / 7
    cell = found.cells[-1]
    assert cell.seeds_below == float((known["Avg."] < average).mean())
    assert found.cells[0].seeds_below == float((known["STS12"] < 66.0).mean())
    (note,) = [note for note in found.notes if "the seed" in note]
    below = 100 * float((known["Avg."] < average).mean())
    assert f"{below:.0f} % are below the {average:.2f} measured here" in note
    assert "90 % below the 76.25 published" in note
    assert "in 50 of an independent reproduction" in note
    assert "outside" not in note
    assert list(found.frame["seeds below"])[-1].endswith(" %")


def test_a_run_outside_the_range_of_the_seeds_is_told_to_be(make_run: MakeRun) -> None:
    found = check(make_run({"STS-B": 30.0}))
    assert any("the run lies outside their range" in note for note in found.notes)


def test_where_no_seeds_are_known_nothing_is_said_of_them(make_run: MakeRun, printed: Printed) -> None:
    found = check(make_run(printed("esimcse-bert-base")), "esimcse-bert-base")
    assert not any("the seed" in note for note in found.notes)
    assert "seeds below" not in found.frame


def test_several_rows_are_told_apart(make_run: MakeRun, printed: Printed) -> None:
    run = make_run(printed(SIMCSE))
    found = check_published(run, [row(SIMCSE), row("esimcse-arxiv-v1-5/unsup-simcse-bert-base")])
    assert found.frame["row"].nunique() == 2
    assert len(found.cells) == 16


def test_where_some_scores_compare_the_sentence_says_how_they_do_before_it_names_the_others(
    make_run: MakeRun,
) -> None:
    name = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"
    model = {"pooling": "avg", "max_length": 256, "normalize": True}
    found = check(make_run({"STS16": 78.99, "SICK-R": 77.15}, model), name)
    assert found.verdict == "not comparable"
    assert found.sentence.startswith(
        f"1 of 1 scores of mine are within 0.05 of {name}, and not all compare: SICK-R: "
    )
    assert "split is test here and all there" in found.sentence
    none = check(make_run({"SICK-R": 77.15}, model), name)
    assert none.sentence.startswith(f"mine and {name} do not compare: SICK-R: split is test here")


def test_a_template_is_remarked_on_by_its_name_where_there_is_one(make_run: MakeRun) -> None:
    plain = check(make_run({"STS-B": 76.85}), SIMCSE)
    assert not any(note.startswith("template") for note in plain.notes)
    asked = check(make_run({"STS-B": 76.85}, {"template": read_template("promptbert")}), SIMCSE)
    assert "template: the row states none; promptbert here" in asked.notes


def test_a_negative_tolerance_is_refused(make_run: MakeRun) -> None:
    with pytest.raises(UserError, match="a tolerance of -1 points"):
        check(make_run({"STS-B": 1.0}), tolerance=-1)
    with pytest.raises(UserError, match="a tolerance of nan points"):
        check(make_run({"STS-B": 1.0}), tolerance=float("nan"))


def test_counts_and_differences_are_no_scores(make_run: MakeRun, printed: Printed) -> None:
    run = make_run(printed(SIMCSE))
    assert check(run, "esimcse-arxiv-v1-5/unsup-simcse-bert-base").cells[-1].name == "Avg."
    counts = check(run, "esimcse-arxiv-v1-3/test")
    assert (counts.cells, counts.exit_code, len(counts.frame)) == ((), 2, 0)
    assert counts.sentence.endswith("do not compare: there is no value to compare with.")


def test_the_whole_finding_is_plain_data(make_run: MakeRun) -> None:
    found = check(make_run({"STS-B": 76.0}, {"pooling": "avg"}))
    told = found.to_dict()
    assert told["verdict"] == "not comparable"
    cell = next(cell for cell in told["cells"] if cell["name"] == "STS-B")
    assert cell["differences"][0] == {
        "field": "pooling",
        "here": "avg",
        "there": "cls_before_pooler",
        "remedy": "measure with --pooling cls_before_pooler",
    }
    assert cell["source"] == "esimcse-coling2022.txt, line 449"
    assert replace(found, cells=()).exit_code == 2


USE = Use(pooling="cls_before_pooler", max_length=512)


def transfer_run(make_run: MakeRun, off: float = 0.0, text: str = "senteval") -> sb.RunRecord:
    """Return a record of the transfer tasks with SimCSE's final accuracies, and on dev two points more."""
    scores = []
    for cell in row(TRANSFER).cells[:7]:
        assert cell.score is not None
        acc, task = (cell.score + off) / 100, cell.setting.task
        signature = Signature(task, "test", "kfold10", "acc", "logreg", text, "3f2a91", USE)
        numbers = (Number(statistic="acc", value=acc), Number(statistic="devacc", value=acc + 0.02))
        scores.append(
            Score(
                kind="transfer", task=task, split="test", text=text, numbers=numbers, signature=str(signature),
                training=Training(method="logreg", design="kfold", kfold=10, seed=1111),
                data=DataPart(status="verified", sha256="3f2a91"),
            )
        )  # fmt: skip
    return make_run({"STS-B": 76.85}).model_copy(update={"scores": tuple(scores)})


def test_transfer_tasks_are_checked_by_their_accuracy_on_test(make_run: MakeRun) -> None:
    found = check(transfer_run(make_run), TRANSFER)
    assert found.verdict == "pass"
    assert [cell.name for cell in found.of("pass")][-2:] == ["MRPC", "Avg."]
    assert "classifier: the paper leaves it open; logreg here" in found.notes
    assert check(transfer_run(make_run, 0.5), TRANSFER).verdict == "fail"


def test_a_dev_accuracy_is_checked_against_one_on_dev(make_run: MakeRun) -> None:
    run = transfer_run(make_run)
    mean = sum(score.numbers[1].value or 0 for score in run.scores) / 7
    found = check(run, "simcse-slides-pooling-and-mlm/mlm-0.01")
    cell = next(cell for cell in found.cells if cell.name == "transfer")
    assert cell.measured == pytest.approx(100 * mean)
    assert cell.verdict in {"pass", "fail"}


def test_a_regressors_score_does_not_compare_with_a_similaritys(make_run: MakeRun) -> None:
    use = Use(pooling="avg")
    signature = Signature("STS-B", "test", "all", "pearson", "supervised", "senteval", "3f2a91", use)
    score = Score(
        kind="supervised", task="STS-B", split="test", text="senteval", signature=str(signature),
        numbers=(Number(statistic="pearson", value=0.77), Number(statistic="spearman", value=0.76)),
        training=Training(method="supervised", design="split", seed=1, stop_by="pearson"),
        data=DataPart(status="verified", sha256="3f2a91"),
    )  # fmt: skip
    run = make_run({"STS-B": 76.85}).model_copy(update={"scores": (score,)})
    assert "similarity is supervised here and cosine there" in check(run).sentence


def test_a_check_shows_its_table_its_notes_and_its_verdict(make_run: MakeRun, printed: Printed) -> None:
    found = check(make_run(printed(SIMCSE)))
    lines = str(found).splitlines()
    assert lines[0].split() == ["task", "published", "measured", "difference", "verdict", "seeds", "below"]
    assert lines[-1] == found.sentence
    assert "note: text: the paper leaves it open; taken as senteval" in lines
    assert found.sentence in found._repr_html_()
    assert found.to("markdown").startswith("| task |")
    assert found.passed
