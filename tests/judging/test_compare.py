"""`compare` from Python: runs of both kinds of task, and methods over seeds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_records import of_scores, with_columns

import stsbench as sb

Encode = Callable[[list[str]], Any]
TASKS = "sample,sample-questions,sample-products"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[sb.RunRecord, sb.RunRecord]:
    """Measure hashed words and hashed letters on both kinds of task."""
    from sklearn.feature_extraction.text import HashingVectorizer

    def measured(analyzer: str) -> sb.RunRecord:
        hashed = HashingVectorizer(n_features=32, norm=None, analyzer=analyzer)
        folder = tmp_path_factory.mktemp(analyzer)
        return sb.evaluate(lambda sentences: hashed.transform(sentences).toarray(), TASKS, out=folder)

    return measured("word"), measured("char")


def test_both_kinds_of_task_are_compared_each_with_its_own_test(
    records: tuple[sb.RunRecord, sb.RunRecord],
) -> None:
    a, b = records
    found = sb.compare(a, b)
    table = found.frame.query("subset == ''")
    assert table["kind"].tolist() == ["sts", "transfer", "transfer", "transfer"]
    assert table["task"].tolist() == ["sample", "sample-questions", "sample-products", "Avg. transfer"]
    assert table["test"].tolist() == ["williams", "mcnemar", "mcnemar", ""]
    # The details are columns of their own, and none of a Python dictionary each.
    assert {"se_dyadic", "williams_t", "only_a"} <= set(table.columns)
    assert "details" not in table
    for score in a.scores_of("transfer"):
        row, training = table.set_index("task").loc[score.task], score.training
        # Of nested folds the record holds the mean over the folds, the comparison the share of all items.
        is_nested = training is not None and training.design == "nested"
        assert row["a"] == pytest.approx(100 * (score.value or 0), abs=1.0 if is_nested else 0.01)
    assert len(found.table()) == 2
    assert len(found.plot().axes[0].get_yticks()) == 4
    assert found.sentence.startswith("STS: ")
    assert " at 5 %. Transfer: " in found.sentence


def test_records_read_from_their_folders_say_the_same(records: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    a, b = records
    folders: list[Path] = [record.folder for record in records if record.folder]
    assert sb.compare(*folders).to_dict() == sb.compare(a, b).to_dict()


def test_transfer_tasks_by_other_classifiers_do_not_compare(records: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    a, _ = records
    sts, score, *others = a.scores
    other = score.model_copy(update={"signature": score.signature.replace("|logreg|", "|mlp-adam|")})
    assert other.signature != score.signature
    changed = a.model_copy(update={"scores": (sts, other, *others)}).with_items(a.items)
    with pytest.raises(sb.UserError, match=f"do not compare on {score.task}: similarity is logreg in one and mlp"):
        sb.compare(a, changed)


def test_runs_without_a_common_task_are_refused(
    records: tuple[sb.RunRecord, sb.RunRecord], hash_encode: Encode
) -> None:
    a, _ = records
    only_transfer, only_sts = of_scores(a, "transfer"), of_scores(a, "sts")
    with pytest.raises(sb.UserError, match="have no task in common"):
        sb.compare(only_transfer, only_sts)
    assert {row.kind for row in sb.compare(a, only_sts).rows} == {"sts"}
    assert "not all records hold sample-questions, sample-products: left out." in sb.compare(a, only_sts).notes


def test_seeds_have_rows_for_both_kinds(records: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    a, b = records
    found = sb.compare([a], [b])
    assert found.frame["task"].tolist() == ["sample", "sample-questions", "sample-products", "Avg. transfer"]
    assert found.frame["a_mean"].tolist()[1:3] == pytest.approx(
        [100 * (score.value or 0) for score in a.scores_of("transfer")]
    )
    assert found.frame["a_mean"].iloc[3] == pytest.approx(np.mean(found.frame["a_mean"][1:3]))
    assert found.sentence.endswith("on transfer average; no claim: that takes 5 runs of each.")


def test_a_corpus_is_held_against_the_test_items_alone(
    records: tuple[sb.RunRecord, sb.RunRecord], tmp_path: Path
) -> None:
    from stsbench.data.benchmarks import load_labelled

    items = load_labelled("sample-questions", text="sample").items
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(items["sentence1"]), encoding="utf-8")
    found = {entry.task: entry for entry in sb.compare(*records, corpora=[corpus]).overlaps}
    questions = found["sample-questions"]
    assert questions.sentences == items.loc[items["split"] == "test", "sentence1"].str.casefold().nunique()
    assert questions.share == 1
    assert found["sample-products"].share < 0.5


def test_compare_plan_and_rank_agree_whatever_the_records_own_intervals_are(
    records: tuple[sb.RunRecord, sb.RunRecord], tmp_path: Path
) -> None:
    def as_seen_by(interval: Any, record: sb.RunRecord) -> sb.RunRecord:
        protocol = record.protocol.model_copy(update={"interval": interval})
        return record.model_copy(update={"protocol": protocol}).with_items(record.items)

    independent = [as_seen_by("independent", record) for record in records]
    compared = sb.compare(*independent)
    assert compared.rows == sb.compare(*records).rows
    assert {row.interval for row in compared.rows} == {"dyadic"}
    assert sb.plan(*independent).rows == sb.plan(*records).rows
    ranked = {task.task: task.p[0][1] for task in sb.rank(independent).tasks}
    assert {row.task: row.p for row in compared.rows if not row.subset} == pytest.approx(ranked)
    asked = sb.compare(*records, intervals=sb.Intervals(interval="independent"))
    assert [row.low for row in asked.rows] != [row.low for row in compared.rows]
    assert any("pairs are taken for independent" in note for note in asked.notes)


def test_a_comparison_without_intervals_is_refused(records: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    with pytest.raises(sb.UserError, match="a comparison rests on one"):
        sb.compare(*records, intervals=sb.Intervals(None))
    with pytest.raises(sb.UserError, match="no run to compare"):
        sb.compare([])


def test_a_comparison_shows_who_is_who_its_tables_its_sentence_and_its_notes(
    records: tuple[sb.RunRecord, sb.RunRecord],
) -> None:
    found = sb.compare(*records, intervals=sb.Intervals())
    shown = str(found)
    assert shown.startswith(f"A: {found.a}\nB: {found.b}\n\ntask ")
    notes = "\n".join(f"note: {note}" for note in found.notes)
    assert shown.endswith(f"\n\n{found.sentence}\n{notes}")
    assert found._repr_html_().count("<table>") == 2
    assert "subset" not in found.table()[0].frame
    assert "subset" in found.table(subsets=True)[0].frame
    assert found.to("latex").startswith(r"\begin{tabular}")


def test_what_is_better_is_called_by_its_name(records: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    named = [
        record.model_copy(update={"model": record.model.model_copy(update={"name": name, "kind": "transformer"})})
        for record, name in zip(records, ("org/words", "org/letters"), strict=True)
    ]
    a, b = (record.with_items(whole.items) for record, whole in zip(named, records, strict=True))
    swapped = with_columns(a, cosine=a.items["gold"])
    assert "org/words is better on sample: " in sb.compare(b, swapped).sentence


def test_a_comparison_is_a_section_of_a_report(records: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    section = sb.compare(*records).section(3)
    assert (section.name, [table.name for table in section.tables]) == (
        "comparison-3",
        ["compare-3-1", "compare-3-2"],
    )
    assert section.text == (section.figures[0].alt,)
    assert section.tables[0].caption.startswith("A: ")
    assert "<svg" in section.figures[0].svg


def test_seeds_show_themselves_too(records: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    found = sb.compare([records[0]], [records[1]])
    assert "sd A" not in found.table()[0].frame
    assert found.plot().axes[0].get_xlabel() == "mean and range over seeds"
    assert str(found).startswith(f"A: {found.a}\nB: {found.b}\n\ntask ")
