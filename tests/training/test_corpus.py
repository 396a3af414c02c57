"""Corpora of every format, their mistakes, and the scored sentences that they contain."""

import gzip
import json
import re
import tracemalloc

import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_sts
from stsbench.data.corpus import corpus_file, load_corpus, read_rows
from stsbench.training.labelled import SCORED, corpus_sentence

PAIRS = [
    ("A cat sat.", "A cat was sitting."),
    ('She said "no", twice.', "No, she said."),
    ("Rain fell.", "It rained."),
]


def write(path, content: bytes):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_pairs_are_read_from_parquet_by_their_names(tmp_path):
    import pandas as pd

    path = tmp_path / "pairs.parquet"
    pd.DataFrame(PAIRS, columns=["a", "b"]).assign(score=1.0).to_parquet(path)
    assert [row for _, row in read_rows(path, 2, ["b", "a"])] == [(b, a) for a, b in PAIRS]
    with pytest.raises(sb.UserError, match=r"row 1: 1\.0 is not a sentence"):
        list(read_rows(path, 2))


NLI = "{}\na,b,c\n"
DIGITS = gzip.compress(b"".join(b"%d owls\n" % (number**7 % 99_991) for number in range(5000)), mtime=0)
NAMED = "id\tleft\tright\n1\ta\tb\n2\tc\td\n"


@pytest.mark.parametrize(
    ("name", "text", "names", "rows"),
    [
        (
            "c.txt",
            "\ufeffOne\u2028still one.\r\n\n  Two.  \nThree",
            None,
            [(1, ("One\u2028still one.",)), (2, ("",)), (3, ("Two.",)), (4, ("Three",))],
        ),
        ("nli.csv", NLI.format("sent0,sent1,hard_neg"), None, [(2, ("a", "b", "c"))]),
        ("nli.csv", NLI.format("anchor,positive,negative"), None, [(2, ("a", "b", "c"))]),
        ("t.tsv", NAMED, ["right", "left"], [(2, ("b", "a")), (3, ("d", "c"))]),
    ],
)
def test_rows_are_lines_of_text_or_the_known_or_named_columns_of_a_table(name, text, names, rows, tmp_path):
    assert list(read_rows(write(tmp_path / name, text.encode()), len(rows[0][1]), names)) == rows


@pytest.mark.parametrize(
    ("name", "data", "columns", "message"),
    [
        ("c.tsv", b"a\tb\na\n", (2,), "c.tsv, line 2: found 1 columns, but the recipe needs 2"),
        ("c.jsonl", b'{"a": 3}\n', (1,), "c.jsonl, line 1: 3 is not a sentence"),
        ("c.gz", b"", (1,), "unknown ending"),
        ("c.tsv", NAMED.encode(), (1, ["middle"]), "has no column 'middle': choose one of id, left, right"),
        ("c.txt.gz", DIGITS[:-20], (1,), r"cannot read .*c\.txt\.gz: "),
        ("c.txt.gz", DIGITS[:2000] + bytes(60) + DIGITS[2060:], (1,), r"cannot read .*c\.txt\.gz: "),
        ("c.txt", None, (1,), "there is no corpus"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_told_with_its_line(name, data, columns, message, tmp_path):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(sb.UserError, match=message):
        list(read_rows(corpus_file(str(tmp_path / name)), *columns))


def test_a_corpus_is_never_held(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_bytes(b"".join(b"sentence number %d\tof many\n" % number for number in range(50_000)))
    tracemalloc.start()
    count = sum(1 for _ in read_rows(path, 2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 50_000
    assert peak < path.stat().st_size / 4


def test_sentences_to_look_at_are_read_from_a_packed_file_each_once(tmp_path):
    path = write(tmp_path / "c.txt.gz", b"One.\n\n Two. \nOne.\n")
    assert load_corpus(path) == ("One.", "Two.")


def test_a_corpus_that_memory_does_not_hold_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "corpus.txt"
    path.write_text("One.\nTwo.\n", encoding="utf-8")
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: 19)
    with pytest.raises(sb.UserError, match=r"the sentences of .*corpus.txt take .* GB of memory"):
        load_corpus(path)


def letters(text):
    return "".join(re.findall(r"[^\W_]", text.casefold()))


def test_each_number_is_what_a_few_lines_count(benchmark_folder, monkeypatch):
    monkeypatch.setattr("stsbench.training.labelled._AT_ONCE", 4)
    names, texts = [name for name in SCORED if not name.startswith("SICK")], []
    for name in names:
        task, _, split = name.partition(":")
        table = load_sts(task, split, data_dirs=[benchmark_folder]).pairs
        texts.append([*table["sentence1"], *table["sentence2"]])
    corpus = ["rain", texts[0][0], *(text.upper() + " !" for text in texts[2][:5]), *texts[3][:7]]
    said, counts = corpus_sentence(iter(corpus), [benchmark_folder]), {}
    for name, of_set in zip(names, texts, strict=True):
        distinct = {letters(text) for text in of_set}
        met = len(distinct & {letters(text) for text in corpus})
        released = len(set(of_set) & set(corpus))
        counts[name] = met, released
        told = f"{met} of the {len(distinct):,} of {name} ({released} as released)"
        assert (told in said) if met else (name in said.partition("none of ")[2])
    assert counts[names[2]][0] > counts[names[2]][1]
    assert {name for name in SCORED if name in said} == set(SCORED)


def test_where_no_task_is_here_nothing_is_said_and_the_corpus_is_not_read():
    assert not corpus_sentence(pytest.fail("read") for _ in range(1))


def test_a_training_states_it_in_record_card_and_log(train, benchmark_folder, tmp_path):
    scored = load_sts("STS13", data_dirs=[benchmark_folder]).pairs["sentence1"].tolist()
    corpus = tmp_path / "leaking.txt"
    corpus.write_text("".join(f"{text.title()}\n" for text in [*scored, *scored]), encoding="utf-8")
    lines = []
    done = train(corpus=corpus, data_dirs=[benchmark_folder], listeners=[lines.append])
    count = len({letters(text) for text in scored})
    (said,) = [note for note in done.record.notes if note.startswith("the corpus contains these scored")]
    assert re.search(rf"{count} of the \d+ of STS13:test \(0 as released\)", said)
    assert said in [line["remark"] for line in lines if line["kind"] == "remark"]
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert f"T{said[1:]}" in card
    assert said in json.loads((done.folder / "run.json").read_text(encoding="utf-8"))["notes"]
