"""Your own pairs are read in four formats, and every mistake names its file and line."""

import gzip
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stsbench.base.errors import UserError
from stsbench.data.tables import load_pairs

ROWS = [("An owl naps.", "An owl sleeps.", 4.5), ("A bus leaves.", "Tea is hot.", 0.0)]
HEADER = ("sentence1", "sentence2", "score")


def write_tsv(path, header, rows):
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in [header, *rows] if row), encoding="utf-8")


def write_csv(path, header, rows):
    pd.DataFrame(rows, columns=list(header)).to_csv(path, index=False)


def write_jsonl(path, header, rows):
    lines = (json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_parquet(path, header, rows):
    pd.DataFrame(rows, columns=list(header)).to_parquet(path)


WRITERS = {".tsv": write_tsv, ".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}


def fails(path, message, **options):
    with pytest.raises(UserError) as failure:
        load_pairs(path, **options)
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


def text_file(tmp_path, name, text, encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize(
    "header",
    [HEADER, ("s1", "s2", "gold"), ("Text1", "TEXT2", "Label"), ("sentence_a", "sentence_b", "similarity")],
)
def test_a_table_is_read_under_the_usual_names(tmp_path, ending, header):
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, header, ROWS)
    data = load_pairs(path)
    assert (data.task, data.split, data.text, data.status) == ("mine", "all", "user", "user")
    assert (data.gold_range, data.problems, data.files[0].expected, data.notes) == ((0.0, 4.5), (), None, ())
    assert data.pairs[["sentence1", "sentence2", "gold"]].values.tolist() == [list(row) for row in ROWS]
    assert set(data.pairs["subset"]) == {"mine"}
    assert data.pairs["gold"].dtype == "float64"


@pytest.mark.parametrize("ending", WRITERS)
def test_a_subset_column_is_used_and_part_of_the_hash(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    rows = [(subset, *row) for subset in ("news", "forum") for row in ROWS]
    WRITERS[ending](path, ("subset", *HEADER), rows)
    assert load_pairs(path).pairs["subset"].tolist() == ["news", "news", "forum", "forum"]
    assert load_pairs(path).files[0].name == f"mine{ending}"
    WRITERS[ending](path, ("genre", *HEADER), rows)
    plain, by_genre = load_pairs(path), load_pairs(path, subset_column="Genre")
    assert set(plain.pairs["subset"]) == {"mine"}
    assert by_genre.pairs["subset"].tolist() == ["news", "news", "forum", "forum"]
    assert by_genre.files[0].name == f"mine{ending}, subsets by genre"
    assert by_genre.sha256 != plain.sha256
    fails(path, "has no column 'topic', only 'genre', 'sentence1'", subset_column="topic")


def test_a_file_without_a_header_has_three_columns_and_a_note(tmp_path):
    path = tmp_path / "mine.tsv"
    write_tsv(path, (), [("premise", "hypothesis", "1"), *ROWS])
    data = load_pairs(path)
    assert data.pairs["pair_id"].tolist() == ["1", "2", "3"]
    assert data.notes == ("mine.tsv has no header: its first line is read as data (sentence1, sentence2, score).",)
    write_tsv(path, (), [("news", *row) for row in ROWS])
    fails(path, "has no column 'sentence1' (or s1, text1, sentence_a), only 'news', 'An owl naps.'")


def test_quotes_are_text_in_tsv_and_quoting_in_csv(tmp_path):
    tsv = load_pairs(text_file(tmp_path, "a.tsv", 's1\ts2\tscore\n"An owl\tnaps"\t1\nb\t"""c"""\t2\n'))
    assert tsv.pairs[["sentence1", "sentence2"]].values.tolist() == [['"An owl', 'naps"'], ["b", '"""c"""']]
    assert tsv.notes == ("a.tsv: 1 sentences are in quotes, which are read as text; in .csv they are not.",)
    csv = load_pairs(text_file(tmp_path, "a.csv", 's1,s2,score\r\n"An owl, ""Ada"",\r\nnaps",x,1\r\nb,c,2\r\n'))
    assert csv.pairs["sentence1"].tolist() == ['An owl, "Ada",\r\nnaps', "b"]
    assert csv.pairs["pair_id"].tolist() == ["2", "4"]


def test_rows_that_repeat_a_pair_count_and_are_a_note(tmp_path):
    write_tsv(tmp_path / "mine.tsv", HEADER, [*ROWS, ROWS[1], (ROWS[0][1], ROWS[0][0], 1.0)])
    data = load_pairs(tmp_path / "mine.tsv")
    assert data.notes[0].startswith("mine.tsv: 2 of 4 rows repeat the sentences of an earlier row")
    assert (len(data.notes), len(data.pairs)) == (1, 4)


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_compressed_table_is_read_and_named_without_its_suffixes(tmp_path, ending, packing):
    import pyarrow as pa

    WRITERS[ending](tmp_path / f"mine{ending}", HEADER, ROWS)
    content = (tmp_path / f"mine{ending}").read_bytes()
    packed = tmp_path / f"mine{ending}{packing}"
    packed.write_bytes(gzip.compress(content) if packing == ".gz" else pa.compress(content, "zstd", asbytes=True))
    data = load_pairs(packed)
    pd.testing.assert_frame_equal(data.pairs, load_pairs(tmp_path / f"mine{ending}").pairs)
    assert (data.task, data.files[0].name) == ("mine", f"mine{ending}{packing}")


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
def test_a_byte_order_mark_windows_line_ends_and_blank_lines_are_no_part_of_the_data(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, HEADER, ROWS)
    first, second, third = (*path.read_bytes().rstrip(b"\n").split(b"\n"), b"")[:3]
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([first, second, b"", third, b"", b"", b""]))
    assert load_pairs(path).pairs["sentence2"].tolist() == ["An owl sleeps.", "Tea is hot."]


sentences = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\x00"), min_size=1).filter(
    lambda text: text.strip()
)
tables = st.lists(
    st.tuples(sentences, sentences, st.floats(allow_nan=False, allow_infinity=False)), min_size=2, max_size=6
).filter(lambda rows: len({row[2] for row in rows}) > 1)


@pytest.mark.parametrize("ending", WRITERS)
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=tables)
def test_what_is_written_is_read_back(tmp_path, ending, rows):
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, HEADER, rows)
    back = load_pairs(path).pairs[["sentence1", "sentence2", "gold"]].values.tolist()
    assert back == [[one.strip(), two.strip(), gold] for one, two, gold in rows]


def test_wrong_cells_are_reported_together(tmp_path):
    path = text_file(tmp_path, "a.tsv", "s1\ts2\tscore\n" + "an owl\train\tmany\n\train\t3\na\tb\tnan\n" * 40)
    with pytest.raises(UserError) as failure:
        load_pairs(path)
    summary, *lines, last = failure.value.sentences
    assert (summary, last) == (f"{path} has 120 mistakes:", "and 110 more.")
    assert [line.partition(":")[0] for line in lines] == [f"{path}, line {number}" for number in range(2, 12)]


HEAD = '{"s1": "a", "s2": "b", "score": 1}\n'

MISTAKES = [
    ("a.xlsx", "x", "unknown ending '.xlsx'; use .tsv, .csv, .jsonl, .parquet; all but Parquet also with"),
    ("a.tsv", "", "is empty: give one pair per line, with the columns sentence1, sentence2, score"),
    ("a.parquet", "", "cannot be read as Parquet"),
    ("a.csv", "s1,s2,score\n", "has no pairs: give one per line"),
    ("a.tsv", "s1\ts2\tscore\na\tb\t1\nx\n", "a.tsv, line 3: expected 3 columns (s1, s2, score), found 1; fix"),
    ("a.tsv", "s1\ts2\tscore\na\tb\tfour\n", "a.tsv, line 2: score 'four' is not a finite number; fix it or"),
    ("a.tsv", "a\tb\t1\nc\t \t2\n", "a.tsv, line 2: sentence2 is empty; fill it in or delete the line."),
    ("a.tsv", "subset\ts1\ts2\tscore\n\ta\tb\t1\n", "a.tsv, line 2: subset is empty"),
    ("a.tsv", "a\tb\t1\n", "a.tsv has a single pair: a correlation needs at least two"),
    ("a.tsv", "a\tb\t2\nc\td\t2.0\n", "a.tsv has the score 2 for every pair: a correlation needs scores"),
    ("a.tsv", "subset\ts1\ts2\tscore\nx\ta\tb\t1\nx\ta\tb\t2\ny\tc\td\t3\n", "a.tsv, subset 'y', has a single"),
    ("a.csv", "question,answer,label\na,b,1\n", "has no column 'sentence1' (or s1, text1, sentence_a), only 'que"),
    ("a.tsv", "s1\tother\tscore\na\tb\t1\n", "has no column 'sentence2' (or s2, text2, sentence_b), only 's1', "),
    ("a.tsv", "sentence1\ttext2\t2023\na\tb\t1\n", "has no column 'score' (or gold, label, similarity), only"),
    ("a.tsv", "s1\ts2\tgold\tlabel\na\tb\t1\t1\n", "several columns for score ('gold', 'label'): rename all but"),
    ("a.tsv", "a\tb\t1\nc\0\td\t2\n", "a.tsv, line 2: NUL byte; save the file as UTF-8"),
    ("a.tsv", "a\tb\t1\rc\td\t2\r", "a.tsv has line ends of old Macs (CR): save it with LF or CRLF"),
    ("a.csv", 's1,s2,score\na,b,1\n"open,c,2\n', "a.csv, line 3: not valid CSV (unexpected end of data); fix"),
    ("a.csv", 's1,s2,score\n"x\ny",b,1\nc,d,bad\n', "a.csv, line 4: score 'bad' is not a finite number"),
    ("a.jsonl", HEAD + "[1]\n", "a.jsonl, line 2: expected a JSON object"),
    ("a.jsonl", HEAD + "{\n", "a.jsonl, line 2: not valid JSON (Expecting property name"),
    ("a.jsonl", '{"s1": "a", "s1": "b"}\n', "a.jsonl, line 1: not valid JSON (the name 's1' occurs twice)"),
    ("a.jsonl", HEAD + '{"s1": "c"}\n', "a.jsonl, line 2: 's2' is missing here or in the first line"),
    ("a.jsonl", HEAD + '{"s1": "c", "s2": "d", "score": 2, "x": 1}\n', "line 2: 'x' is missing here or in the"),
    ("a.jsonl", HEAD + '{"s1": "c", "s2": 3, "score": 2}\n', "a.jsonl, line 2: s2 is 3, not text; fix the line."),
    ("a.jsonl", HEAD + '{"s1": "c", "s2": "d", "score": true}\n', "line 2: score True is not a finite number"),
    ("a.jsonl", HEAD + '{"s1": "c \\ud800", "s2": "d", "score": 2}\n', "line 2: s1 has an invalid character"),
]


@pytest.mark.parametrize(
    ("name", "text", "message"), MISTAKES, ids=[f"{n}-{m[0]}" for n, m in enumerate(MISTAKES)]
)
def test_a_mistake_is_one_sentence_with_file_line_and_remedy(tmp_path, name, text, message):
    fails(text_file(tmp_path, name, text), message)


def test_files_that_cannot_be_read_are_named(tmp_path):
    fails(tmp_path / "none.tsv", f"there is no file {tmp_path / 'none.tsv'}: check the path given to --data")
    fails(tmp_path, f"{tmp_path} is a folder, not a file: check the path given to --data")
    fails(text_file(tmp_path, "caf\udce9.tsv", "a\tb\t1\n"), "can't encode character '\\udce9'")
    path = text_file(tmp_path, "a.tsv", "a\tb\t1\nc\tcafé\t2\n", "latin-1")
    fails(path, "a.tsv, line 2: byte 0xe9 is not utf-8; save the file as utf-8.")
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\tb\t1\nc\td\t2\n")[:-10])
    fails(tmp_path / "a.tsv.gz", "cannot read")
    write_parquet(tmp_path / "a.parquet", HEADER, ROWS * 500)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[60:80] = b"x" * 20
    (tmp_path / "a.parquet").write_bytes(content)
    fails(tmp_path / "a.parquet", "cannot be read as Parquet")


def test_pairs_that_do_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: 10)
    fails(text_file(tmp_path, "a.tsv", "a\tb\t1\nc\td\t2\n"), "of which 0.0 GB are free: measure a part of them")
