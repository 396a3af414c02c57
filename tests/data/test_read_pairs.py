"""A person's own pairs are read in four formats, and every mistake is named with its file and line."""

import csv
import gzip
import json
import os

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import stsbench as sb
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


@pytest.mark.parametrize(
    ("ending", "wrong", "right"),
    [
        ("tsv", ["an owl\train", "an owl\train\tmany", "\train\t3", "a\tb\t1\tmore"], "an owl\train\t{}"),
        ("csv", ["an owl,rain", "an owl,rain,many", ",rain,3", "a,b,1,more"], "an owl,rain,{}"),
        (
            "jsonl",
            ['{"sentence1": "an owl"}', "[1]", '{"sentence1": "a", "sentence2": "b", "score": "many"}', "{"],
            '{{"sentence1": "an owl", "sentence2": "rain", "score": {}}}',
        ),
    ],
)
def test_all_mistakes_of_a_file_are_told_in_one_go(ending, wrong, right, tmp_path):
    path = tmp_path / f"pairs.{ending}"
    lines = [right.format(1), *wrong, right.format(2)]
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(UserError) as told:
        load_pairs(path)
    summary, *each = told.value.sentences  # a line each on the screen
    assert summary == f"{path} has 4 mistakes:"
    assert [line.partition(":")[0] for line in each] == [f"{path}, line {number}" for number in (2, 3, 4, 5)]
    path.write_text("".join(f"{line}\n" for line in [right.format(1), *wrong * 30]))
    with pytest.raises(UserError) as told:
        load_pairs(path)
    summary, *each, last = told.value.sentences
    assert (summary, len(each), last) == (f"{path} has 120 mistakes:", 10, "and 110 more.")


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


QUOTED = [('She said "no".', "A bus\tleaves.", 4.5), ("An owl naps.", "Tea is hot.", 0.0), ("One.", "Two.", 1.0)]


@pytest.mark.parametrize("header", [(), HEADER])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL])
@pytest.mark.parametrize("rows", [QUOTED, [QUOTED[0], ("One\nand two.", "Three.", 1.0)]])
def test_a_tsv_that_was_written_as_csv_is_read_as_it_was_meant(tmp_path, header, quoting, rows):
    path = tmp_path / "mine.tsv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", quoting=quoting).writerows([header, *rows] if header else rows)
    assert '"She said ""no""."' in path.read_text(encoding="utf-8")
    data = load_pairs(path)
    assert data.pairs[["sentence1", "sentence2", "gold"]].values.tolist() == [list(row) for row in rows]
    assert "mine.tsv has its quotes as CSV has them: those around a cell are no part of its text." in data.notes


@pytest.mark.parametrize("cell", ['5" wide', '"Hi", he said', '"so" and "so"', '"', 'a ""b""'])
def test_quotes_of_a_tsv_that_are_not_csvs_are_text_in_the_whole_file(tmp_path, cell):
    first = f'{cell}\t"He said ""no"""\t1\n"An owl."\tb\t2\n'
    data = load_pairs(text_file(tmp_path, "a.tsv", f"s1\ts2\tscore\n{first}"))
    assert data.pairs["sentence1"].tolist() == [cell, '"An owl."']
    assert data.pairs["sentence2"].tolist() == ['"He said ""no"""', "b"]
    assert data.notes == ()


def test_quotes_around_a_cell_of_a_tsv_that_may_be_text_are_told(tmp_path):
    data = load_pairs(text_file(tmp_path, "a.tsv", 's1\ts2\tscore\n"An owl."\tb\t1\nc\td\t2\n'))
    assert data.pairs["sentence1"].tolist() == ['"An owl."', "c"]
    (note,) = data.notes
    assert note.startswith("a.tsv has quotes around 1 cell, which are read as a part of the text")


@pytest.mark.parametrize("ending", [".tsv", ".csv"])
def test_a_header_whose_third_cell_is_a_number_is_no_pair(tmp_path, ending):
    WRITERS[ending](tmp_path / f"a{ending}", ("sentence1", "text2", "2023"), ROWS)
    fails(tmp_path / f"a{ending}", "has no column score (or gold, label, similarity), only 'sentence1', 'text2'")


def test_a_file_without_a_header_says_that_its_first_line_is_a_pair(tmp_path):
    write_tsv(tmp_path / "mine.tsv", (), [("premise", "hypothesis", "1"), *ROWS])
    (note,) = load_pairs(tmp_path / "mine.tsv").notes
    assert note == "mine.tsv has no header: its first line is a row like the others (sentence1, sentence2, score)."
    write_tsv(tmp_path / "mine.tsv", HEADER, ROWS)
    assert load_pairs(tmp_path / "mine.tsv").notes == ()


@pytest.mark.parametrize("ending", WRITERS)
def test_rows_that_repeat_a_pair_count_and_are_told_once(tmp_path, ending):
    swapped = (ROWS[0][1], ROWS[0][0], 1.0)
    WRITERS[ending](tmp_path / f"mine{ending}", HEADER, [*ROWS, ROWS[1], swapped])
    data = load_pairs(tmp_path / f"mine{ending}")
    (note,) = data.notes
    assert note.startswith(f"mine{ending}: 2 of 4 rows repeat the two sentences of an earlier one")
    record = sb.evaluate(lambda texts: [[len(text), 1.0] for text in texts], data=tmp_path / f"mine{ending}")
    assert record.scores[0].items == 4
    assert record.notes.count(note) == 1


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
    # Of a TSV without quoting, a text such as '"a""b"' looks as if it had some.
    assume(ending != ".tsv" or not any('""' in cell for row in rows for cell in row[:2]))
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, HEADER, rows)
    back = load_pairs(path).pairs[["sentence1", "sentence2", "gold"]].values.tolist()
    assert back == [[one.strip(), two.strip(), gold] for one, two, gold in rows]


def test_a_file_that_does_not_exist_is_named(tmp_path):
    fails(tmp_path / "none.tsv", f"there is no file {tmp_path / 'none.tsv'}: check the path")
    fails(tmp_path, f"{tmp_path} is a folder, not a file: check the path given to --data")


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
            "a.tsv has several columns for score ('gold', 'label'): rename or delete all but one",
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
    rows = {".tsv": "a\tb\t1\n", ".csv": "a,b,1\n", ".jsonl": '{"s1": "a", "s2": "b", "score": 1}\n'}[ending]
    path = text_file(tmp_path, f"mine{ending}", 2 * rows + "café\n", "latin-1")
    fails(path, f"{path}, line 3: byte 0xe9 is not utf-8; save the file as utf-8.")


def test_a_mistake_in_parquet_is_named_with_its_row(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, HEADER, [*ROWS, ("a", None, 1.0)])
    fails(path, "a.parquet, row 3: sentence2 is None, not text")


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("s1,s2,label,score", "score"),
        ("s1,s2,score,score", "score"),
        ("s1,s2,score,Gold", "score"),
        ("s1,sentence1,s2,score", "sentence1"),
        ("s1,s2,text2,score", "sentence2"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_of_two_columns_for_one_thing_none_wins(tmp_path, ending, header, role):
    text = f"{header}\na,b,4,5\nc,d,5,4\n"
    path = text_file(tmp_path, f"a{ending}", text if ending == ".csv" else text.replace(",", "\t"))
    fails(path, f"has several columns for {role} (")


def test_two_subset_columns_are_refused(tmp_path):
    path = text_file(tmp_path, "a.csv", "s1,s2,score,subset,Subset\na,b,4,x,y\nc,d,5,x,y\n")
    fails(path, "has several columns 'subset': rename or delete all but one.")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"s1": "a", "s2": "b", "score": 1, "score": 5}', "not valid JSON (the name 'score' occurs twice)"),
        ('{"s1": "a", "s2": "b", "score": 1, "gold": 5}', "'gold' is not in line 1, which says what is read"),
        ('{"s1": "a", "s2": "b", "score": ' + "9" * 5000 + "}", "not valid JSON (Exceeds the limit"),
        ('{"s1": "a", "s2": "b", "score": ' + "[" * 100_000 + "}", "not valid JSON ("),
        ('{"s1": "a\\u0000", "s2": "b", "score": 1}', "s1 holds a NUL character"),
        ('{"s1": "a", "s2": "b", "score": 1e999}', "the score inf is not a finite number"),
    ],
)
def test_json_that_would_be_read_otherwise_than_it_stands_there_is_refused(tmp_path, line, message):
    first = '{"s1": "a", "s2": "b", "score": 1}\n'
    fails(text_file(tmp_path, "a.jsonl", f"{first}{line}\n"), f"a.jsonl, line 2: {message}")


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
def test_a_nul_byte_and_utf_16_are_named_with_their_line(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    WRITERS[ending](path, HEADER, ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"sleeps", b"sle\0ps"))
    fails(path, f"line {1 if ending == '.jsonl' else 2}: a NUL byte, which no text holds; save the file as UTF-8")
    path.write_text(whole.decode(), encoding="utf-16-le")
    fails(path, "line 1: a NUL byte, which no text holds; save the file as UTF-8 (this may be UTF-16)")
    path.write_text(whole.decode(), encoding="utf-16")
    fails(path, "line 1: byte 0xff is not utf-8; save the file as utf-8.")


def test_lines_that_end_in_carriage_returns_alone_are_told(tmp_path):
    path = text_file(tmp_path, "a.tsv", "s1\ts2\tscore\ra\tb\t1\rc\td\t2\r")
    fails(path, "ends its lines with carriage returns alone: save it with line feeds")


def test_a_line_without_end_is_refused_before_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr("stsbench.data.rows.LONGEST_LINE", 1 << 20)
    path = text_file(tmp_path, "a.tsv", "a\tb\t1\n" + "c" * (1 << 21))
    fails(path, "a.tsv, line 2: longer than 1 MB, which is no sentence")
    packed = tmp_path / "b.tsv.gz"
    packed.write_bytes(gzip.compress(b"x" * (1 << 26)))
    fails(packed, "b.tsv.gz, line 1: longer than 1 MB, which is no sentence")
    long_cell = text_file(tmp_path, "c.csv", 's1,s2,score\n"' + "x" * 200_000 + '",b,1\n')
    fails(long_cell, "c.csv, line 2: not valid CSV (a cell of more than 131072 characters); mend its quotes.")


@pytest.mark.parametrize("ending", [".tsv.gz", ".tsv.zst", ".parquet"])
def test_a_file_that_is_cut_short_at_any_place_is_told(tmp_path, ending):
    import pyarrow as pa

    whole = tmp_path / f"whole{ending}"
    rows = [(f"An owl number {n}.", f"{n * n} buses.", float(n)) for n in range(200)]
    write_tsv(tmp_path / "plain.tsv", HEADER, rows)
    if ending == ".parquet":
        write_parquet(whole, HEADER, rows)
    elif ending == ".tsv.gz":
        whole.write_bytes(gzip.compress((tmp_path / "plain.tsv").read_bytes()))
    else:
        with pa.output_stream(whole, compression="zstd") as stream:
            stream.write((tmp_path / "plain.tsv").read_bytes())
    assert len(load_pairs(whole).pairs) == 200
    data = whole.read_bytes()
    for cut in (1, 5, len(data) // 3, len(data) // 2, len(data) - 9, len(data) - 1):
        short = tmp_path / f"short{ending}"
        short.write_bytes(data[:cut])
        with pytest.raises(UserError, match="short"):
            load_pairs(short)


@pytest.mark.parametrize("ending", WRITERS)
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe{ending}")
    fails(
        tmp_path / f"pipe{ending}", "is a pipe or device, not a file: check the path given to --data, or save its"
    )
    (tmp_path / f"zero{ending}").symlink_to("/dev/zero")
    fails(tmp_path / f"zero{ending}", "is a pipe or device, not a file")


def test_a_name_too_long_or_with_a_nul_is_told(tmp_path):
    fails(tmp_path / ("x" * 300 + ".tsv"), "(File name too long): check the path and its permissions.")
    fails(tmp_path / "a\0b.tsv", "check the path and its permissions.")


def test_pairs_that_do_not_fit_into_memory_are_refused_while_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: 10_000)
    monkeypatch.setattr("stsbench.data.own_pairs._PAIRS_AT_ONCE", 10)
    path = text_file(tmp_path, "a.tsv", "".join(f"a\tb\t{n}\n" for n in range(30)))
    fails(path, "the first 10 pairs of ")
    fails(path, "measure a part of them, or use a machine with more.")
    path = text_file(tmp_path, "b.tsv", "".join(f"{'a' * 400}\tb\t{n}\n" for n in range(30)))
    fails(path, f"the pairs of {path} take 0.0 GB of memory")
