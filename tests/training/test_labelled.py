"""Labelled tables: what is read of them, which pairs are dropped, and how a mistake in one is told."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import stsbench as sb
from stsbench.training.labelled import STS_B, read_tasks
from stsbench.training.recipe_files import read_recipe


def read(*overrides, folders=(), recipe="demo"):
    return read_tasks(read_recipe(recipe, overrides), folders)


def one_sentence(path, *more):
    keys = ", ".join([f"train: {path}", "columns: [text, label]", *more])
    (task,) = read(f"tasks={{t: {{kind: classification, {keys}}}}}")
    return task


def scored(path, folder, *more, test_pairs="dropped"):
    keys = ", ".join([f"train: {path}", "columns: [a, b, score]", *more])
    (task,) = read(
        f"tasks={{t: {{kind: regression, {keys}}}}}",
        f"labelled.test_pairs={test_pairs}",
        "selection.task=sample",
        folders=[folder],
    )
    return task


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("t.csv", 'text,label\n"a, b",1\nc,0.0\nd,1\ne,\n', ()),
        ("t.csv", "x\ttext\tlabel\n1\ta, b\t1\n2\tc\t0\n3\td\t1.0\n4\t\t1\n", ('delimiter: "\\t"',)),
        ("t.tsv", "label\ttext\n1\ta, b\n0\tc\n1\td\n1\t\n", ()),
        ("t.jsonl", '{"text": "a, b", "label": 1}\n{"text": "c", "label": "0"}\n{"text": "d", "label": 1.0}\n'
         '{"text": "e", "label": null}\n', ()),
    ],
)  # fmt: skip
def test_a_table_of_any_format_is_read_by_its_columns_and_rows_with_an_empty_cell_are_counted(
    name, text, more, write
):
    table = write(name, text)
    task = one_sentence(table, f"dev: {table}", *more)
    assert task.classes == ("0", "1")
    assert task.train.sentences == (["a, b", "c", "d"],)
    assert task.train.targets.tolist() == [1, 0, 1]
    assert task.left_out == 2  # one in the table, which is its own dev table here
    assert "left out 2 with an empty cell" in task.sentence()


def test_classes_are_numbered_as_the_recipe_names_them_or_in_order(write):
    table = write("t.tsv", "text\tlabel\na\t10\nb\t9\nc\tno\nd\t9\n")
    assert one_sentence(table).classes == ("9", "10", "no")
    task = one_sentence(table, "classes: ['no', 10, 9]", f"dev: {table}")
    assert task.train.targets.tolist() == [1, 2, 0, 2]


def test_scores_are_scaled_by_the_scale_of_the_recipe_or_of_the_table(write, benchmark_folder):
    table = write("t.tsv", "a\tb\tscore\n1\t2\t1\n3\t4\t3\n5\t6\t4\n")
    read_from_it = scored(table, benchmark_folder, f"dev: {table}")
    assert read_from_it.scale == (1, 4)
    np.testing.assert_allclose(read_from_it.train.targets, [0, 2 / 3, 1])
    given = scored(table, benchmark_folder, f"dev: {table}", "scale: [0, 5]")
    np.testing.assert_allclose(given.train.targets, [0.2, 0.6, 0.8])


def test_a_part_is_held_out_by_the_seed_and_the_rest_is_trained_on(write):
    table = write("t.tsv", "text\tlabel\n" + "".join(f"sentence {n}\t{n % 2}\n" for n in range(40)))
    task = one_sentence(table, "held_out: 0.25")
    train, dev = set(task.train.sentences[0]), set(task.dev.sentences[0])
    assert (len(train), len(dev), len(train & dev)) == (30, 10, 0)
    again = one_sentence(table, "held_out: 0.25")
    assert again.dev.sentences == task.dev.sentences
    assert len(one_sentence(table).dev) == 4


BAD = [
    ("t.tsv", "text\tlabel\na\t1\nb\t2\nc\t3\n", ("classes: [1, 2]",), r"t.tsv, line 4: the label '3' is none of"),
    ("t.tsv", "text\tlabel\na\t1\nb\t1\n", (), r"t.tsv has no two classes in column 'label'"),
    ("t.tsv", "text\tlabel\na\t1\nb\n", (), r"t.tsv, line 3: expected 2 columns"),
    ("t.tsv", "text\tlable\na\t1\n", (), r"t.tsv has no column 'label': did you mean lable"),
    ("t.csv", 'text,label\n"a,1\n', (), r"t.csv, line 2: not valid CSV"),
    ("t.jsonl", '{"text": "a", "label": 1}\n{"text": 5, "label": 1}\n', (), r"t.jsonl, line 2: text is 5, no"),
    ("t.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n', (), r"t.jsonl, line 2: 'label' is missing"),
    ("t.tsv", "text\tlabel\n", (), r"t.tsv has no two classes"),
    ("t.txt", "a\nb\n", (), r"t.txt has one sentence per line: it has no columns"),
    ("t.tsv", "text\tlabel\na\t1\n\t2\nc\t2\n", ("rows: 1", "classes: [1, 2]"), r"t.tsv leaves no row to train"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "more", "message"), BAD)
def test_a_bad_line_of_a_table_is_told_with_file_and_line(name, text, more, message, write):
    with pytest.raises(sb.UserError, match=message):
        one_sentence(write(name, text), *more)


@pytest.mark.parametrize(
    ("row", "more", "message"),
    [
        ("c\td\tfour", (), r"t.tsv, line 3: the score 'four' is not a finite number"),
        ("c\td\tnan", (), r"t.tsv, line 3: the score 'nan' is not a finite number"),
        ("c\td\t6", ("scale: [0, 5]",), r"t.tsv, line 3: the score 6 is outside of the scale, 0 to 5"),
        ("c\td\t1", (), r"t.tsv has no two scores in column 'score'"),
    ],
)
def test_a_bad_score_is_told_with_file_and_line(row, more, message, write, benchmark_folder):
    with pytest.raises(sb.UserError, match=message):
        scored(write("t.tsv", f"a\tb\tscore\na\tb\t1\n{row}\n"), benchmark_folder, *more)


def test_a_table_that_is_not_there_is_told_with_the_task_and_the_option_that_names_the_folder(tmp_path):
    with pytest.raises(sb.UserError, match=r"tasks.t: there is no none.tsv in .*--set labelled.folder=FOLDER"):
        one_sentence("none.tsv")
    with pytest.raises(sb.UserError, match=rf"no ids-sst-train.csv in {re.escape(str(tmp_path))}"):
        read(f"labelled.folder={tmp_path}", recipe="multitask-bert-base", folders=[])


def rows_of(benchmark_folder, task, split):
    from stsbench.data.benchmarks import load_sts

    pairs = load_sts(task, split, data_dirs=[benchmark_folder]).pairs
    return list(zip(pairs["sentence1"], pairs["sentence2"], strict=True))


@pytest.fixture
def leaking(write, benchmark_folder):
    """A table with two dev and three test pairs of STS-B (one twice, one turned, one spelt anew), others too."""
    dev, test = rows_of(benchmark_folder, "STS-B", "dev"), rows_of(benchmark_folder, "STS-B", "test")
    (a, b), (c, d) = test[1], test[2]
    rows = [
        *dev[:2],
        test[0],
        test[0],
        (b, a),
        (f"{c.upper()} !", d),
        rows_of(benchmark_folder, "STS12", "test")[0],
    ]
    rows += [(f"own {n}", f"other {n}") for n in range(5)]
    # Both sentences of STS-B, but no pair of it.
    rows += [(a, d)]
    lines = "".join(f"{one}\t{other}\t{n % 3}\n" for n, (one, other) in enumerate(rows))
    return write("t.tsv", "a\tb\tscore\n" + lines)


def test_scored_pairs_are_dropped_in_either_order_and_spelling_and_counted(leaking, write, benchmark_folder):
    dev = write("dev.tsv", "a\tb\tscore\nx\ty\t1\nz\tu\t2\n")
    task = scored(leaking, benchmark_folder, f"dev: {dev}")
    assert (task.overlap.rows, dict(task.overlap.dropped)) == (6, {"STS-B:dev": 2, "STS-B:test": 3})
    assert (len(task.train), dict(task.overlap.left)) == (7, {"STS12:test": 1})
    assert "dropped 6 that hold scored pairs (2 of STS-B:dev and 3 of STS-B:test)" in task.sentence()
    assert re.match(r"Trained on test pairs: of the 7 pairs .* \(1 of STS12:test\), so", task.test_remark())

    every = scored(leaking, benchmark_folder, f"dev: {dev}", test_pairs="all-dropped")
    assert (len(every.train), every.overlap.rows, every.test_remark()) == (6, 7, None)

    kept = scored(leaking, benchmark_folder, f"dev: {dev}", test_pairs="kept")
    assert (len(kept.train), kept.overlap.rows) == (13, 0)
    assert "(2 of STS-B:dev, 3 of STS-B:test and 1 of STS12:test)" in kept.test_remark()


def test_without_the_benchmark_nothing_can_be_dropped_and_that_is_told(leaking, tmp_path):
    with pytest.raises(
        sb.UserError, match=r"pairs of STS-B:dev are to be dropped .*test_pairs: dropped\), and it is"
    ):
        scored(leaking, tmp_path / "empty")
    task = scored(leaking, tmp_path / "empty", test_pairs="kept")
    assert "not looked for the pairs of STS-B:dev, STS-B:test, STS12:test" in task.sentence()


def test_the_courses_sts_files_lose_the_pairs_of_sts_b_that_a_plain_count_finds(shared, senteval):
    if not (shared / "data" / "cs224n").is_dir():
        pytest.skip("needs ../shared/data/cs224n")
    overrides = [f"labelled.folder={shared / 'data' / 'cs224n'}"]
    tasks = {task.name: task for task in read(*overrides, recipe="multitask-bert-base", folders=[senteval])}

    def plain(text):
        return "".join(letter for letter in text.casefold() if letter.isalnum())

    with (shared / "data" / "cs224n" / "sts-train.csv").open(encoding="utf-8", newline="") as stream:
        table = [frozenset(map(plain, row[2:4])) for row in csv.reader(stream, delimiter="\t")][1:]
    of_sets = {}
    for name in STS_B:
        file = senteval / "downstream" / "STS" / "STSBenchmark" / f"sts-{name.partition(':')[2]}.csv"
        lines = file.read_text(encoding="utf-8").splitlines()
        of_sets[name] = {frozenset(map(plain, line.split("\t")[5:7])) for line in lines}
    counts = {name: len(pairs & set(table)) for name, pairs in of_sets.items()}
    assert counts == {"STS-B:dev": 1035, "STS-B:test": 949}
    similarity = tasks["similarity"]
    assert dict(similarity.overlap.dropped) == counts
    left = [pair for pair in table if not any(pair in pairs for pairs in of_sets.values())]
    assert len(similarity.train) == len(left) == len(table) - similarity.overlap.rows == 4043
    # Most of what is left are test pairs of the years that STS-B was made of: it is said, and not to be hidden.
    assert sum(similarity.overlap.left.values()) > 3000
    assert "STS14:test" in similarity.test_remark()
    assert tasks["sentiment"].overlap is None
    assert (len(tasks["sentiment"].train), len(tasks["sentiment"].dev)) == (8544, 1101)
    assert tasks["paraphrase"].left_out == 2
    assert len(tasks["paraphrase"].train) + len(tasks["paraphrase"].dev) == 20_212
