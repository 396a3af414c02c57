"""A mistake ends in one sentence that names the option or file, exit code 2, no output and no record.

The tables have a command line and a regular expression that the sentence must contain.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

Stsbench = Callable[..., Any]
MODEL = ("run", "-m", "toys:words")

COMMANDS = [
    ("measure", "No such command 'measure': see `stsbench --help`"),
    ("rnu", "Did you mean run"),
    ("data lst", "Did you mean 'list'"),
    ("run --kfolds 3", "Possible options: --kfold"),
    ("run --kfold many", "--kfold 'many': expected a whole number"),
    ("check x --tolerance small", "--tolerance 'small': expected a number"),
    ("run --kfold", "'--kfold' requires an argument"),
    ("run --overwrite=yes", "'--overwrite' does not take a value"),
    ("check", "RUN is missing"),
    ("show a --format mteb", "give both, or neither"),
    ("show a --model owner/name", "apply to --format mteb"),
    ("rank a b --draws 10000000000000", "--draws .*less than or equal to 1000000"),
    ("compare a b --level nan", "--level"),
    ("compare a b --interval dyadik", "--interval"),
    ("compare a b --difference 1", "No such option: --difference"),
    ("run --classifier-seed -1", "--classifier-seed"),
    ("run --max-length 0", "--max-length"),
    ("run --kfold 1", "--kfold"),
    ("check x --tolerance inf", "--tolerance"),
    ("explain geometry --positive nan", "--positive"),
    ("diagnose -c 3 --length 64 --length 99999999", "--length"),
    ("reproduce esimcse-coling2022-9 --seeds 1,x", "--seeds 1,x: 'x' is not a whole number"),
    ("fit whitening -m minilm --out new", "--sentences is missing"),
    ("fit whitening -m minilm -s sample --steps 7 -o new", "steps is not an option of a whitening"),
    ("fit flow -m minilm -s sample --learning-rate 0 -o new", "--learning-rate"),
    ("show x --json --csv", "one output format: json or csv"),
    ("show x --format yaml", "--format 'yaml': choose one of"),
    ("compare a b --figure-size page", "add --figure"),
    ("compare a b --figure one.jpg", "cannot write a figure to one.jpg"),
    ("compare a b --figure one.svg --figure-size poster", "poster"),
    ("run -m toys:words --out file", "file: it is a file; choose another folder with --out"),
    ("report r --model-card --out folder", "folder: it is a folder; choose another file with --out"),
    ("data get --to file", "it is a file; choose another folder with --to"),
    ("check r --junit folder", "choose another file with --junit"),
    ("explain spectrum --figure folder.png", "folder.png: it is a folder"),
    ("check r --junit /dev/null", "it is a pipe or device"),
    ("run -m toys:words --out=", "--out is empty"),
    ("compare", "Name two or more runs"),
    ("compare --b b", "Name two or more runs"),
    ("compare a b c --subsets", "--subsets applies to a comparison of two runs: leave it out"),
    ("compare a b --number 76.25", "--number applies to one method"),
    ("compare a b --task STS12", "--task applies to one method"),
    ("compare --a a --b b --number 1 --task x", "--number and --task apply to one method"),
    ("compare --a a --b b --subsets", "--subsets applies to a comparison of two runs"),
    ("compare --a a b --number 1 --figure x.pdf --figure-size page", "--figure and --figure-size apply to a comp"),
    (
        "compare --a a b --task sample --interval dyadic --level 0.9",
        "--interval and --level apply to a comparison",
    ),
    ("check a --interval independent", "--interval applies to a check with --baseline"),
    ("explore a --without-text --data some.tsv", "--data applies to a page with sentences"),
    ("report a --model-card --like minilm --title T", "--like and --title apply to a page"),
    ("diagnose --like v.npy -t STS12 --tolerance 1", "--tasks and --tolerance apply to a claimed number"),
    ("diagnose a --like v.npy --length 9 --protocol mteb", "RUN, --protocol and --length apply to a claimed"),
    ("compare --a -q", "--a.* requires an argument"),
    ("compare a nowhere", "no run record at nowhere"),
    ("compare --a seed* --b b", r"no run record at seed\*"),
    ("compare --a a a", "a is named twice"),
    ("compare a c", "sample: metric is spearman in one and pearson"),
    ("rank a", "expected 2 to 100 runs"),
    ("plan a b --difference 0 --seed-spread 1", "more than 0"),
    ("plan a experiment", "got 1. left out: experiment is an experiment"),
    ("compare --a 70 --number 1", "no seeds of '70'"),
    ("check a --against nothing", "no published row 'nothing'"),
    ("check a --margin 1", "--margin needs --baseline"),
    ("diagnose -m minilm", "name the number with --claim"),
    (
        "diagnose -m minilm --like v.npy --claim 3",
        "--claim applies to a claimed number, not to the vectors of --like",
    ),
    ("diagnose -m toys:words --like v.npy", "shape .2, 3. for 50 sentences"),
    ("diagnose -m toys:words --claim 50 --or minilm", "--or applies to the vectors of --like"),
    ("diagnose -m toys:words -c 50 --data some.tsv -t STS12", "--tasks applies to benchmark data"),
    ("diagnose a --pooling avg", "RUN determines the model and its use"),
    ("check a --baseline b --against auto", "--against and --baseline exclude each other"),
    ("check a --baseline b --tolerance 1", "--tolerance and --baseline exclude each other"),
    ("report a --paper bert", "no paper 'bert'"),
    ("explore a a a", "expected 1 to 2 runs, got 3"),
    ("board empty", "no run.json below empty"),
    ("length-bias a --length letters", "length 'letters': choose one of words"),
    ("length-bias a --bins 0,x", "--bins 0,x: 'x' is not a whole number"),
    ("length-bias a --length subwords", "subwords are unknown"),
    ("explain density a --task SICK-R", "has no SICK-R"),
    ("explain length-collapse a --bins 3,8", "bins 3,8"),
    ("explain dimensions a --tasks STS16", r"has no STS16 \(it has sample\)"),
    ("explain hubness a -k 503", "503 neighbours"),
    ("explain geometry a --task MR", "MR has labels"),
    ("explain repetition-bias a --queries 5000", "have a candidate"),
    ("explain compress a --sizes half", "--sizes half: 'half'"),
    ("explain compress a --margin 0", "a margin of 0 points"),
    ("explain probes a --kinds tence", "did you mean tense"),
    ("explain probes a --triples none.tsv", "none.tsv"),
    ("explain geometry a --pooling cls", "--pooling"),
    ("diagnose --claim much -m toys:interrupted --tasks sample", "'much'"),
    ("diagnose --claim 50 -m toys:words -t sample --tolerance 0", "positive number"),
    ("diagnose --claim row:nobody -m toys:words", "no published row 'nobody'"),
    ("diagnose --claim 50 -m toys:words -t sample --protocol no", "unknown protocol 'no'"),
    ("run -m minilm --pooling mean -t sample", "did you mean avg"),
    ("train", "name a recipe"),
    ("train dmeo", "did you mean demo"),
    ("train demo --set negatives.queue=null --set optimiser.batch=1000", "fewer than one batch of 1000"),
    ("train minilm-simcse --corpus wiki.txt", "wiki.txt"),
    ("train --resume runs/none", "no training"),
    ("train demo --device tpu", "unknown device 'tpu'"),
    ("train --print --set x", "--set x: write key=value"),
    ("reproduce", "`stsbench reproduce --list`"),
    ("fit whitening -m toys:words -s sample -o new", "weights have a hash"),
    ("fit whitening -m toys:words -s STS99 -o new", "hash|no task 'STS99'"),
    ("data get imagenet", "no data source 'imagenet'"),
    ("data verify STS1", "STS1"),
    ("published row esimsce-bert-base", "did you mean esimcse"),
    ("published show esimcse-coling2022-33", "did you mean"),
    ("published list things", "'things'"),
]

PAIRS = [
    (b"", "is empty"),
    (b"sentence1\tsentence2\tscore\n", "has no pairs"),
    (b"a\tb\t1\n", "single pair"),
    (b"a\tb\t3\nc\td\t3\n", "score 3 for every pair"),
    (b"a\tb\t1\nc\td\tgood\n", "line 2: score 'good'"),
    (b"a\tb\t1\nc\td\tnan\n", "line 2: score 'nan'"),
    (b"a\tb\t1\nalone\n", "line 2: .*3"),
    (b"a\tb\t1\n\td\t2\n", "line 2: sentence1 is empty"),
    (b"a\tb\t1\ncaf\xe9\td\t2\n", "line 2: .*0xe9"),
    (b"one\ttwo\n", "sentence1"),
]

FILES = {f"{number}.tsv": content for number, (content, _) in enumerate(PAIRS)} | {
    "file": b"",
    "two.txt": b"one\ntwo\n",
    "three.txt": b"one\ntwo\nthree\n",
    "some.tsv": b"a\tb\t1\nc\td\t2\n",
    "nan.txt": b"0.5\nnan\n",
    "word.txt": b"0.5\nhigh\n",
    "braces.json": b"{}",
    "digits.json": b'{"STS12": ' + b"9" * 5000 + b"}",
    "alias.yaml": b"a: &a [*a]",
    "digits.yaml": b"seed: " + b"9" * 5000,
    "experiment/experiment.yaml": b"recipe: simcse\n",
}
VECTORS = [
    ("v.npy --sentences two.txt", r"two\.txt lacks \d+ of the \d+ sentences"),
    ("v.npy --sentences none.txt", r"none\.txt"),
    ("v.npy --sentences three.txt", r"three\.txt has 3 lines but .*v\.npy has 2"),
    ("two.txt --sentences two.txt", r"two\.txt is not a"),
]
SIMILARITIES = [
    ("nan.txt --gold some.tsv", r"nan\.txt, line 2: similarity 'nan' is not a finite number"),
    ("word.txt --gold some.tsv", r"word\.txt, line 2: similarity 'high' is not"),
    ("two.npy --gold sample-opinions", "sample-opinions"),
]

OPTIONS = [
    ("--tasks sample --protocol sbert", "unknown protocol 'sbert'"),
    ("--tasks sample --protocol simsce", "did you mean simcse"),
    ("--tasks sample --metric bleu", "unknown metric 'bleu'"),
    ("--tasks sample --aggregation median", "unknown aggregation 'median'"),
    ("--tasks sample --similarity jaccard", "unknown similarity 'jaccard'"),
    ("--tasks sample --text upper", "unknown text 'upper'"),
    ("--tasks STS99", "no task 'STS99'"),
    ("--tasks STS-BB", "did you mean STS-B"),
    ("--tasks MR", "MR was not found in .*stsbench data get"),
    ("--tasks MR:dev", "leave out ':dev'"),
    ("--tasks sts@upper", "text 'upper'"),
    ("--tasks STS-B:validation", "no split 'validation'"),
    ("--tasks sample-movies --classifier svm", "unknown classifier 'svm'"),
    ("--tasks sample-questions --kfold 50", "too few for 50 folds"),
    ("--tasks sample --encoder-module toys", "--encoder-module toys"),
    ("--data-dir nowhere", "--data-dir names nowhere"),
    ("--data nowhere.tsv", "no file nowhere.tsv"),
    ("--tasks sample --data pairs.tsv", "--tasks and --data exclude each other"),
    ("--tasks sample --dimensions 9", "--dimensions 9: .* 8"),
    ("--tasks sample --whiten 9", "whitening cannot keep 9 dimensions"),
    ("--tasks sample -m toys:letters --out x", "--out is a single folder"),
    ("--tasks sample --vectors v.npy", "--vectors needs --sentences"),
    ("--tasks sample --sentences s.txt", "--vectors needs --sentences"),
]

MODELS = [
    ("./nowhere", "no such model: ./nowhere"),
    ("toys:nothing", "has no attribute 'nothing'"),
    ("nomodule:encode", "nomodule"),
    ("toys:number", "toys:number is a int"),
    ("toys:one_row_more", r"toys:one_row_more returned float64 of shape \(\d+, 3\) for \d+ sentences"),
    ("toys:flat", r"toys:flat returned float64 of shape \(\d+,\)"),
    ("toys:text", "toys:text returned"),
    ("toys:nan", "toys:nan gives NaN"),
]

INPUT, GOLD = "STS.input.OnWN.txt", "STS.gs.OnWN.txt"
DAMAGES: list[tuple[str, Callable[[list[bytes]], list[bytes]], str]] = [
    (GOLD, lambda lines: lines[:-1], r"STS\.input\.OnWN\.txt has 12 lines but .*STS\.gs\.OnWN\.txt has 11"),
    (GOLD, lambda lines: [*lines[:3], b"four\n", *lines[4:]], r"OnWN\.txt, line 4: .*'four'"),
    (INPUT, lambda lines: [*lines[:5], b"alone\n", *lines[6:]], "txt, line 6: expected 2 .* found 1"),
    (INPUT, lambda lines: [lines[0], b"caf\xe9\tb\n", *lines[2:]], "txt, line 2: .*0xe9"),
    (INPUT, lambda _lines: [], r"STS\.input\.OnWN\.txt is empty"),
]

TABLE = [
    *COMMANDS,
    *((f"train {name}", re.escape(name)) for name in ("alias.yaml", "digits.yaml")),
    *((f"check {name}", re.escape(name)) for name in ("braces.json", "digits.json")),
    *((f"run -m toys:words --data {i}.tsv", rf"{i}\.tsv.*{sentence}") for i, (_, sentence) in enumerate(PAIRS)),
    *((f"run --vectors {vectors} --tasks sample", sentence) for vectors, sentence in VECTORS),
    *((f"import {results} --out x", sentence) for results, sentence in SIMILARITIES),
    *((f"run -m toys:words {options}", sentence) for options, sentence in OPTIONS),
    *((f"run -m {name} --tasks sample", sentence) for name, sentence in MODELS),
]


@pytest.mark.parametrize(("line", "sentence"), TABLE)
def test_a_mistake_is_one_sentence_with_exit_code_2_and_changes_nothing(
    stsbench: Stsbench, on_sample: Callable[..., None], line: str, sentence: str
) -> None:
    for name, options in (("a", ("words",)), ("b", ("letters",)), ("c", ("words", "--metric", "pearson"))):
        on_sample(name, *options, "--no-intervals")
    for name in ("empty", "experiment", "folder", "folder.png"):
        Path(name).mkdir()
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    np.save("v.npy", np.ones((2, 3)))
    np.save("two.npy", np.ones(2))
    before = sorted(Path().rglob("*"))
    done = stsbench(*line.split())
    assert (done.code, done.out) == (2, ""), done
    *notes, last = done.err.strip().splitlines()
    assert last.startswith("stsbench: ")
    assert not any(note.startswith("stsbench: ") for note in notes)
    assert re.search(sentence, last), last
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(("name", "change", "sentence"), DAMAGES)
def test_broken_benchmark_files_are_named_with_their_line(
    stsbench: Stsbench, sts13: Path, name: str, change: Callable[[list[bytes]], list[bytes]], sentence: str
) -> None:
    path = sts13 / "downstream" / "STS" / "STS13-en-test" / name
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    run = (*MODEL, "--tasks", "STS13", "--data-dir", sts13)
    stsbench(*run).demand_one_sentence(sentence)
    path.unlink()
    stsbench(*run).demand_one_sentence(rf"STS13 is incomplete in .*{re.escape(name)} is missing")


def test_an_interrupt_keeps_the_records_that_were_made(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:interrupted", "--tasks", "sample")
    done.demand_one_sentence("interrupted: the same command resumes from the cache", code=130)
    assert not Path("runs").exists()
    done = stsbench(*MODEL, "-m", "toys:interrupted", "--tasks", "sample")
    assert done.code == 130
    assert "interrupted: runs/toys_words-own-sample recorded; the same command resumes" in done.err
    assert [path.parent.name for path in Path("runs").glob("*/run.json")] == ["toys_words-own-sample"]


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (
            PermissionError(13, "Permission denied", "the/path"),
            2,
            "Cannot use the/path .Permission denied",
        ),
        (MemoryError(), 2, "Not enough memory"),
        (ModuleNotFoundError("no", name="ir_measures"), 2, r"pip install 'stsbench\[retrieval\]'"),
        (ImportError("initialization failed"), 130, "interrupted"),
    ],
    ids=["permission", "memory", "module", "interrupt"],
)
def test_an_error_of_the_system_is_one_sentence(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, sentence: str
) -> None:
    error.__cause__ = KeyboardInterrupt() if code == 130 else None
    monkeypatch.setattr("stsbench.records.show.show", Mock(side_effect=error))
    stsbench("show", "run").demand_one_sentence(sentence, code=code)


def test_a_wrong_date_is_reported_and_a_question_without_an_answer_deletes_nothing(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("noon", "-1", "99999999999999999"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
        done = stsbench("doctor")
        assert (done.code, f"SOURCE_DATE_EPOCH is '{value}'" in done.err) == (2, True)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = stsbench("cache", "clear")
    assert (done.code, "Nothing was done" in done.err) == (2, True)


def test_several_mistakes_have_a_line_each_and_do_not_stop_other_models(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:nan", "-m", "toys:words", "-m", "./nowhere", "--tasks", "sample", "-q")
    assert (done.code, done.out.splitlines()[2].split()[0]) == (2, "toys:words")
    assert [line.split(":")[1].strip() for line in done.err.splitlines() if ":" in line] == ["toys", "./nowhere"]
    assert "recorded in runs/toys_words-own-sample\n" in done.err
    assert [path.name for path in Path("runs").iterdir()] == ["toys_words-own-sample"]
