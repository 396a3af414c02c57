"""A person's own pairs are read in four formats, and every mistake is named with its file and line."""

import gzip
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stsbench.base.errors import UserError
from stsbench.data.own_pairs import load_pairs

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
def test_a_table_is_read(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, HEADER, ROWS)
    data = load_pairs(path)
    assert (data.task, data.split, data.text, data.status) == ("mine", "all", "user", "user")
    assert (data.gold_range, data.problems, data.files[0].expected) == ((0.0, 4.5), (), None)
    assert data.pairs[["sentence1", "sentence2", "gold"]].values.tolist() == [list(row) for row in ROWS]
    assert set(data.pairs["subset"]) == {"mine"}
    assert data.pairs["gold"].dtype == "float64"


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize(
    "header",
    [
        ("s1", "s2", "gold"),
        ("Text1", "TEXT2", "Label"),
        ("sentence_a", "sentence_b", "similarity"),
        ("Sentence1", "sentence2", "SCORE"),
    ],
)
def test_columns_are_found_under_their_usual_names(tmp_path, ending, header):
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, header, ROWS)
    assert load_pairs(path).pairs["gold"].tolist() == [4.5, 0.0]


@pytest.mark.parametrize("ending", WRITERS)
def test_a_subset_column_is_used(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    rows = [(subset, *row) for subset in ("news", "forum") for row in ROWS]
    WRITERS[ending](path, ("subset", *HEADER), rows)
    assert load_pairs(path).pairs["subset"].tolist() == ["news", "news", "forum", "forum"]
    WRITERS[ending](path, ("genre", *HEADER), rows)
    assert set(load_pairs(path).pairs["subset"]) == {"mine"}
    assert load_pairs(path, subset_column="Genre").pairs["subset"].tolist() == ["news", "news", "forum", "forum"]
    fails(path, "has no subset column 'topic', only 'genre', 'sentence1'", subset_column="topic")


def test_a_file_without_a_header_has_three_columns(tmp_path):
    path = tmp_path / "mine.tsv"
    write_tsv(path, (), ROWS)
    assert load_pairs(path).pairs["pair_id"].tolist() == ["1", "2"]
    write_tsv(path, (), [("news", *row) for row in ROWS])
    fails(path, "has no column sentence1 (or s1, text1, sentence_a), only 'news', 'An owl naps.'")


def test_quotes_are_plain_in_tsv_and_quoting_in_csv(tmp_path):
    tsv = text_file(tmp_path, "a.tsv", 's1\ts2\tscore\n"An owl\tnaps"\t1\nb\tc\t2\n')
    assert load_pairs(tsv).pairs["sentence1"].tolist() == ['"An owl', "b"]
    csv = text_file(tmp_path, "a.csv", 's1,s2,score\n"An owl, ""Ada"",\nnaps",x,1\nb,c,2\n')
    pairs = load_pairs(csv).pairs
    assert pairs["sentence1"].tolist() == ['An owl, "Ada",\nnaps', "b"]
    assert pairs["pair_id"].tolist() == ["2", "4"]


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
def test_a_table_is_uncompressed_on_the_way_and_called_without_its_endings(tmp_path, ending):
    WRITERS[ending](tmp_path / f"mine{ending}", HEADER, ROWS)
    packed = tmp_path / f"mine{ending}.gz"
    packed.write_bytes(gzip.compress((tmp_path / f"mine{ending}").read_bytes()))
    data = load_pairs(packed)
    pd.testing.assert_frame_equal(data.pairs, load_pairs(tmp_path / f"mine{ending}").pairs)
    assert (data.task, data.files[0].name) == ("mine", f"mine{ending}.gz")


def test_a_line_end_inside_quotes_stays_as_it_is(tmp_path):
    path = text_file(tmp_path, "a.csv", 's1,s2,score\r\n"one\r\ntwo",b,1\r\nc,d,2\r\n')
    assert load_pairs(path).pairs["sentence1"].tolist() == ["one\r\ntwo", "c"]
    old_mac = text_file(tmp_path, "b.csv", "s1,s2,score\ra,b,1\rc,d,2\r")
    assert load_pairs(old_mac).pairs["pair_id"].tolist() == ["2", "3"]


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_data(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, HEADER, ROWS)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    assert load_pairs(path).pairs["sentence2"].tolist() == ["An owl sleeps.", "Tea is hot."]


def test_the_hash_follows_the_bytes(tmp_path):
    one = text_file(tmp_path, "a.tsv", "a\tb\t1\nc\td\t2\n")
    before = load_pairs(one).sha256
    assert load_pairs(one).sha256 == before
    text_file(tmp_path, "a.tsv", "a\tb\t1\nc\td\t2.0\n")
    assert load_pairs(one).sha256 != before


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


def test_a_file_that_does_not_exist_is_named(tmp_path):
    fails(tmp_path / "none.tsv", f"there is no file {tmp_path / 'none.tsv'}: check the path")
    fails(tmp_path, f"there is no file {tmp_path}")


def test_an_unknown_ending_is_named(tmp_path):
    path = text_file(tmp_path, "mine.xlsx", "x")
    fails(path, f"{path}: unknown ending '.xlsx'; use .tsv, .csv, .jsonl, .parquet; all but Parquet also with")


@pytest.mark.parametrize("ending", WRITERS)
def test_an_empty_file_is_named(tmp_path, ending):
    fails(text_file(tmp_path, f"mine{ending}", ""), "is empty: give it one pair a line")


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
def test_a_file_of_empty_lines_is_empty(tmp_path, ending):
    fails(text_file(tmp_path, f"mine{ending}", "\n\n"), "is empty: give it one pair a line")


def test_half_a_character_is_named(tmp_path):
    rows = '{"s1": "a", "s2": "b", "score": 1}\n{"s1": "c \\ud800", "s2": "d", "score": 2}\n'
    fails(text_file(tmp_path, "a.jsonl", rows), "a.jsonl, line 2: s1 holds half a character; mend the line.")


@pytest.mark.parametrize(("ending", "text"), [(".tsv", "s1\ts2\tscore\n"), (".csv", "s1,s2,score\n")])
def test_a_header_alone_is_not_enough(tmp_path, ending, text):
    fails(text_file(tmp_path, f"mine{ending}", text), "has a header but no pairs: add one pair a line.")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "s1\ts2\tscore\na\tb\t1\nalone\n", "a.tsv, line 3: 3 columns expected (s1, s2, score), 1 found"),
        (
            "a.tsv",
            "a\tb\t1\n\nc\td\t2\n",
            "a.tsv, line 2: sentence1 is empty; fill it in or delete the line.",
        ),
        (
            "a.tsv",
            "a\tb\t1\nb\tc\nc\td\t2\n",
            "a.tsv, line 2: 3 columns expected (sentence1, sentence2, score), 2 found",
        ),
        ("a.csv", "s1,s2,score\na,b,1\nalone\n", "a.csv, line 3: 3 columns expected (s1, s2, score), 1 found"),
        ("a.csv", 's1,s2,score\na,b,1\n"open,c,2\n', "a.csv, line 3: not valid CSV (unexpected end of data)"),
        ("a.csv", 's1,s2,score\n"x\ny",b,1\nc,d,bad\n', "a.csv, line 4: the score 'bad' is not a finite number"),
        (
            "a.tsv",
            "s1\ts2\tscore\na\tb\tfour\nc\td\t2\n",
            "a.tsv, line 2: the score 'four' is not a finite number",
        ),
        ("a.tsv", "a\tb\tnan\nc\td\t2\n", "a.tsv, line 1: the score 'nan' is not a finite number"),
        ("a.tsv", "a\tb\t1\nc\td\t-inf\n", "a.tsv, line 2: the score '-inf' is not a finite number"),
        ("a.tsv", "a\tb\t1\nc\t \t2\n", "a.tsv, line 2: sentence2 is empty; fill it in or delete the line."),
        ("a.tsv", "subset\ts1\ts2\tscore\n\ta\tb\t1\n", "a.tsv, line 2: subset is empty"),
        ("a.tsv", "a\tb\t1\n", "a.tsv has a single pair: a correlation needs at least two"),
        (
            "a.tsv",
            "a\tb\t2\nc\td\t2.0\n",
            "a.tsv has the score 2 for every pair: a correlation needs scores that differ",
        ),
        (
            "a.tsv",
            "subset\ts1\ts2\tscore\nx\ta\tb\t1\nx\ta\tb\t2\ny\tc\td\t3\n",
            "a.tsv, subset 'y', has a single pair",
        ),
        (
            "a.tsv",
            "subset\ts1\ts2\tscore\nx\ta\tb\t1\nx\ta\tb\t1\ny\tc\td\t3\ny\tc\td\t1\n",
            "a.tsv, subset 'x', has the score 1 for every pair",
        ),
        (
            "a.tsv",
            "s1\tother\tscore\na\tb\t1\n",
            "a.tsv has no column sentence2 (or s2, text2, sentence_b), only 's1', ",
        ),
        (
            "a.tsv",
            "s1\ts2\tgold\tlabel\na\tb\t1\t1\n",
            "a.tsv has several columns for score ('s1', 's2', 'gold', 'label')",
        ),
        ("a.jsonl", '{"s1": "a", "s2": "b", "score": 1}\n{"s1"\n', "a.jsonl, line 2: not valid JSON ("),
        ("a.jsonl", "[1, 2]\n", "a.jsonl, line 1: a JSON object expected"),
        (
            "a.jsonl",
            '{"s1": "a", "s2": "b", "score": 1}\n{"s1": "a", "score": 1}\n',
            "a.jsonl, line 2: 's2' is missing, which line 1 has; add it.",
        ),
        ("a.jsonl", '{"s1": "a", "s2": 7, "score": 1}\n', "a.jsonl, line 1: s2 is 7, not text"),
        (
            "a.jsonl",
            '{"s1": "a", "s2": "b", "score": null}\n',
            "a.jsonl, line 1: the score None is not a finite number",
        ),
        (
            "a.jsonl",
            '{"s1": "a", "s2": "b", "score": true}\n',
            "a.jsonl, line 1: the score True is not a finite number",
        ),
        (
            "a.jsonl",
            '{"s1": "a", "s2": "b", "score": NaN}\n',
            "a.jsonl, line 1: the score nan is not a finite number",
        ),
        ("a.parquet", "no parquet", "a.parquet cannot be read as Parquet ("),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line(tmp_path, name, text, message):
    fails(text_file(tmp_path, name, text), message)


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
def test_a_wrong_encoding_is_named_with_its_line(tmp_path, ending):
    path = text_file(tmp_path, f"mine{ending}", "{}\n{}\ncafé\n", "latin-1")
    fails(path, f"{path}, line 3: byte 0xe9 is not utf-8; save the file as utf-8.")


def test_a_mistake_in_parquet_is_named_with_its_row(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, HEADER, [*ROWS, ("a", None, 1.0)])
    fails(path, "a.parquet, row 3: sentence2 is None, not text")


def test_a_score_column_by_its_own_name_wins_over_its_aliases(tmp_path):
    path = text_file(tmp_path, "a.tsv", "s1\ts2\tlabel\tscore\na\tb\t0\t4\nc\td\t0\t5\n")
    assert load_pairs(path).pairs["gold"].tolist() == [4.0, 5.0]
