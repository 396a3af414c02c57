"""Labelled tables: what is read of them, which pairs are dropped, and how a mistake in one is told."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import stsbench as sb
from stsbench.training.labelled import STS_B, read_tasks
from stsbench.training.recipe import read_recipe


def read(*overrides, folders=(), recipe="demo"):
    return read_tasks(read_recipe(recipe, overrides), folders)


def one_sentence(path, *more):
    classes = () if any(key.startswith("classes") for key in more) else ("classes: [0, 1]",)
    keys = ", ".join([f"train: {path}", "columns: [text, label]", *classes, *more])
    (task,) = read(f"tasks={{t: {{kind: classification, {keys}}}}}")
    return task


def scored(path, folder, *more, test_pairs="dropped"):
    keys = ", ".join([f"train: {path}", "columns: [a, b, score]", "scale: [0, 5]", *more])
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
    assert task.train.sentences == (["a, b", "c", "d"],)
    assert task.train.targets.tolist() == [1, 0, 1]
    # One is in the table, which is its own dev table here.
    assert task.finding == "task t: 3 rows to train on, 3 to score; left out 2 with an empty cell."


def test_labels_become_numbers_of_classes_and_scaled_scores(write, benchmark_folder):
    table = write("t.tsv", "text\tlabel\na\t10\nb\t9\nc\tno\nd\t9.0\n")
    assert one_sentence(table, "classes: ['no', 10, 9]", f"dev: {table}").train.targets.tolist() == [1, 2, 0, 2]
    table = write("t.jsonl", '{"text": "a", "label": true}\n{"text": "b", "label": "false"}\n')
    assert one_sentence(table, "classes: [false, true]", f"dev: {table}").train.targets.tolist() == [1, 0]
    table = write("t.tsv", "a\tb\tscore\n1\t2\t1\n3\t4\t3\n5\t6\t4\n")
    np.testing.assert_allclose(scored(table, benchmark_folder, f"dev: {table}").train.targets, [0.2, 0.6, 0.8])


def test_a_part_is_held_out_by_the_seed_and_the_rest_is_trained_on(write):
    table = write("t.tsv", "text\tlabel\n" + "".join(f"sentence {n}\t{n % 2}\n" for n in range(40)))
    task = one_sentence(table)
    train, dev = set(task.train.sentences[0]), set(task.dev.sentences[0])
    assert (len(train), len(dev), len(train & dev)) == (36, 4, 0)
    again = one_sentence(table)
    assert again.dev.sentences == task.dev.sentences


CLASSES, SCORED = ("classes: [1, 2]",), "a\tb\tscore\na\tb\t1\nc\td\t%s\n"
BAD = [
    ("t.tsv", "text\tlabel\na\t1\nb\t2\nc\t3\n", CLASSES, "t.tsv, line 4: the label '3' is not one"),
    ("t.tsv", "text\tlable\na\t1\n", (), r"t.tsv has no column 'label': did you mean lable"),
    ("t.jsonl", '{"text": "a", "label": 1}\n{"text": 5, "label": 1}\n', (), r"t.jsonl, line 2: text is 5, not"),
    ("t.tsv", "text\tlabel\na\t1\n\t2\nc\t2\n", ("rows: 1", *CLASSES), r"t.tsv leaves no row to train"),
    ("t.tsv", SCORED % "four", None, "t.tsv, line 3: the score 'four' is not a finite number"),
    ("t.tsv", SCORED % "nan", None, "t.tsv, line 3: the score 'nan' is not a finite number"),
    ("t.tsv", SCORED % "6", None, "t.tsv, line 3: the score 6 is outside of the scale, 0 to 5; fix"),
    ("t.tsv", SCORED % "-0.1", None, "t.tsv, line 3: the score -0.1 is outside of the scale, 0 to 5"),
]


@pytest.mark.parametrize(("name", "text", "more", "message"), BAD)
def test_a_bad_table_is_reported_with_file_and_line(name, text, more, message, write, benchmark_folder):
    table = write(name, text)
    with pytest.raises(sb.UserError, match=message):
        scored(table, benchmark_folder) if more is None else one_sentence(table, *more)


def test_a_missing_table_is_reported_with_the_option_that_names_the_folder(tmp_path):
    for folder in (None, str(tmp_path)):
        keys = "{kind: classification, train: none.tsv, columns: [a, b], classes: [0, 1]}"
        where = re.escape(folder or str(Path.cwd()))
        with pytest.raises(
            sb.UserError, match=rf"no labelled table none.tsv in {where}: .*labelled.folder=FOLDER"
        ):
            read(f"labelled.folder={folder or 'null'}", f"tasks={{t: {keys}}}")


def rows_of(benchmark_folder, task, split):
    from stsbench.data.benchmarks import load_sts

    pairs = load_sts(task, split, data_dirs=[benchmark_folder]).pairs
    return list(zip(pairs["sentence1"], pairs["sentence2"], strict=True))


@pytest.fixture
def leaking(write, benchmark_folder):
    """A table with two dev and three test pairs of STS-B (one twice, one turned, one spelt anew), others too."""
    dev, test = rows_of(benchmark_folder, "STS-B", "dev"), rows_of(benchmark_folder, "STS-B", "test")
    (a, b), (c, d) = test[1], test[2]
    others = [rows_of(benchmark_folder, "STS12", "test")[0], *((f"own {n}", f"other {n}") for n in range(5))]
    # The last has two sentences of STS-B, but is not a pair of it.
    rows = [*dev[:2], test[0], test[0], (b, a), (f"{c.upper()} !", d), *others, (a, d)]
    lines = "".join(f"{one}\t{other}\t{n % 3}\n" for n, (one, other) in enumerate(rows))
    return write("t.tsv", "a\tb\tscore\n" + lines)


def test_scored_pairs_are_dropped_in_either_order_and_spelling_and_counted(leaking, write, benchmark_folder):
    dev = write("dev.tsv", "a\tb\tscore\nx\ty\t1\nz\tu\t2\n")
    task = scored(leaking, benchmark_folder, f"dev: {dev}")
    assert len(task.train) == 7
    assert "dropped 6 with scored pairs (2 of STS-B:dev and 3 of STS-B:test)" in task.finding
    assert task.remark.startswith("Trained on test pairs: t is trained on 1 of STS12:test, so scores there")

    kept = scored(leaking, benchmark_folder, f"dev: {dev}", test_pairs="kept")
    assert len(kept.train) == 13
    assert "dropped" not in kept.finding
    assert "on 2 of STS-B:dev, 3 of STS-B:test and 1 of STS12:test, so" in kept.remark


def test_without_the_benchmark_nothing_can_be_dropped_and_that_is_told(leaking, tmp_path):
    with pytest.raises(sb.UserError, match=r"test_pairs: dropped drops the pairs of STS-B:dev, which is missing"):
        scored(leaking, tmp_path / "empty")
    task = scored(leaking, tmp_path / "empty", test_pairs="kept")
    assert "not checked for the pairs of STS-B:dev, STS-B:test, STS12:test" in task.finding


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
    assert "(1,035 of STS-B:dev and 949 of STS-B:test)" in similarity.finding
    left = [pair for pair in table if not any(pair in pairs for pairs in of_sets.values())]
    assert len(similarity.train) == len(left) == 4043
    # Most of the others are test pairs of the years that STS-B was made of.
    assert "STS14:test" in similarity.remark
    assert tasks["sentiment"].remark is None
    assert (len(tasks["sentiment"].train), len(tasks["sentiment"].dev)) == (8544, 1101)
    assert "left out 2 with an empty cell" in tasks["paraphrase"].finding
    assert len(tasks["paraphrase"].train) + len(tasks["paraphrase"].dev) == 20_212
