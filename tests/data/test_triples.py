"""Triples for probes: the bundled set is what its card says, HEROS and a person's file are read or refused."""

import re
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample, sample_sentences
from stsbench.data.fetch import get
from stsbench.data.sentences import sentences_in
from stsbench.data.triples import COLUMNS, Triple, load_triples

PROBES = files("stsbench.data") / "probes"
KINDS = (
    "negation",
    "antonym",
    "role-swap",
    "number",
    "tense",
    "quantifier",
    "synonym",
    "typo",
    "reordering",
)
NEGATIONS = {"not", "never", "no", "nobody", "nothing", "cannot"}
WITH_NEGATION = {"do", "does", "did", "longer"}
NUMBER_WORDS = """
two three four five six seven eight nine ten twelve nineteen twenty thirty forty fifty seventy sixty-four
eighty-one hundred thousand second ninth fourth seventh third tenth
"""
AUXILIARIES = "will have has had is are am was were be do does did"
QUANTIFIERS = """
all most several every few both always some many none rarely half each much hardly any plenty of never
everybody somebody a usually occasionally either neither everything something lot almost no nearly little
frequently seldom more than second single enough the minority majority countless sometimes often one
"""


def words(text: str) -> list[str]:
    return [word.strip(".,?!").casefold() for word in text.split()]


def difference(one: str, other: str) -> tuple[list[str], list[str]]:
    """Return the words of two texts between the beginning and the end that they have in common."""
    left, right = words(one), words(other)
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    return left, right


def edits(one: str, other: str) -> int:
    """Return how many letters to put in, leave out, replace or swap with the next lie between two words."""
    best = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            here = best[i - 1, j - 1] + (one[i - 1] != other[j - 1])
            here = min(here, best[i - 1, j] + 1, best[i, j - 1] + 1)
            if i > 1 and j > 1 and one[i - 2 : i] == other[j - 2 : j][::-1]:
                here = min(here, best[i - 2, j - 2] + 1)
            best[i, j] = here
    return best[len(one), len(other)]


def of(kind: str) -> tuple[Triple, ...]:
    return load_triples(kinds=[kind]).rows


def test_the_bundled_set_has_forty_triples_of_each_kind() -> None:
    bundled = load_triples()
    assert (bundled.name, bundled.notes) == ("bundled", ())
    assert Counter(row.kind for row in bundled.rows) == dict.fromkeys(KINDS, 40)
    assert tuple(dict.fromkeys(row.kind for row in bundled.rows)) == KINDS
    card = (PROBES / "CARD.md").read_text(encoding="utf-8")
    assert set(KINDS) == set(re.findall(r"^\| `([a-z-]+)` \|", card, re.MULTILINE)) - {"kind"}
    assert "CC0 1.0" in card


def test_the_bundled_file_is_plain_ascii_and_every_sentence_is_written_as_one() -> None:
    text = (PROBES / "triples.tsv").read_bytes().decode("ascii")
    assert text.startswith("\t".join(COLUMNS) + "\n")
    assert text.endswith("\n")
    assert "\r" not in text
    assert '"' not in text
    for row in load_triples().rows:
        for sentence in row[1:]:
            assert re.fullmatch(r"[A-Z][^\t]*[a-z0-9][.?!]", sentence), sentence
            assert "  " not in sentence
            assert " ," not in sentence


def test_no_sentence_of_the_bundled_set_is_there_twice_or_in_the_sample() -> None:
    seen = Counter(" ".join(words(sentence)) for row in load_triples().rows for sentence in row[1:])
    # A reordering has the same words, in another order.
    assert [sentence for sentence, times in seen.items() if times > 1] == []
    sample = {" ".join(words(sentence)) for sentence in (*sample_sentences(), *sentences_in(load_sample()))}
    assert sample & set(seen) == set()


@pytest.mark.shared
def test_no_sentence_of_the_bundled_set_stands_in_the_benchmarks(shared: Path) -> None:
    def plain(text: str) -> str:
        return " ".join(re.findall(r"[a-z0-9]+", text.casefold().replace("'", "")))

    ours = {plain(sentence) for row in load_triples().rows for sentence in row[1:]}
    looked_at = 0
    for path in (shared / "data").rglob("*"):
        if path.is_file():
            for line in path.read_bytes().decode("utf-8", errors="replace").splitlines():
                looked_at += 1
                for cell in line.split("\t"):
                    assert plain(cell) not in ours, (path, cell)
    assert looked_at > 100_000


def test_openings_and_constructions_of_the_bundled_set_vary() -> None:
    openings = Counter(tuple(words(row.sentence)[:2]) for row in load_triples().rows)
    assert max(openings.values()) <= 4, openings.most_common(3)
    lengths = {len(words(row.sentence)) for row in load_triples().rows}
    assert lengths >= set(range(4, 14))
    content = Counter(word for row in load_triples().rows for word in set(words(row.sentence)) if len(word) > 5)
    assert max(content.values()) <= 9, content.most_common(3)


@pytest.mark.parametrize("row", of("negation"), ids=lambda row: row.sentence)
def test_in_a_negation_a_negation_is_put_in_or_taken_out_and_nothing_else(row: Triple) -> None:
    sides = [NEGATIONS & set(words(text)) for text in (row.sentence, row.changed)]
    assert sum(map(bool, sides)) == 1
    left, right = (
        [word for word in side if word not in NEGATIONS | WITH_NEGATION]
        for side in difference(row.sentence, row.changed)
    )
    # What is left is one verb in two forms, or the word that a negative one stands for.
    assert len(left) <= 1
    assert len(right) <= 1
    if left and right:
        assert edits(left[0], right[0]) <= 3
    else:
        assert set(left + right) <= {"somebody", "something", "an", "a", "can"}


@pytest.mark.parametrize("kind", ["antonym", "number"])
def test_in_an_antonym_and_a_number_one_word_is_another(kind: str) -> None:
    for row in of(kind):
        left, right = difference(row.sentence, row.changed)
        assert (len(left), len(right)) == (1, 1), row
        is_number = [
            bool(re.fullmatch(r"[\d.:,]+", word)) or word in NUMBER_WORDS.split() for word in (*left, *right)
        ]
        assert is_number == [kind == "number"] * 2, row
        assert not NEGATIONS & {*left, *right}


@pytest.mark.parametrize("row", of("tense"), ids=lambda row: row.sentence)
def test_in_a_tense_only_the_verb_differs(row: Triple) -> None:
    left, right = difference(row.sentence, row.changed)
    if len(left) > 2:  # A question: the subject stands between the verb's parts, and is the same.
        assert left[1:-1] == right[1:-1]
        left, right = [left[0], left[-1]], [right[0], right[-1]]
    verbs = [[word for word in side if word not in AUXILIARIES.split()] for side in (left, right)]
    assert max(map(len, verbs)) <= 1
    if all(verbs):
        (one,), (other,) = verbs
        # Forms of one verb, which begin alike even where they are irregular.
        assert one[0] == other[0]
    assert left != right


@pytest.mark.parametrize("row", of("quantifier"), ids=lambda row: row.sentence)
def test_in_a_quantifier_only_words_of_quantity_differ(row: Triple) -> None:
    left, right = difference(row.sentence, row.changed)
    assert left
    assert right
    assert {*left, *right} <= set(QUANTIFIERS.split())


@pytest.mark.parametrize("row", [*of("role-swap"), *of("reordering")], ids=lambda row: row.sentence)
def test_swapped_roles_and_reorderings_have_the_same_words_in_another_order(row: Triple) -> None:
    texts = [row.sentence, row.changed, *([row.paraphrase] if row.kind == "reordering" else [])]
    assert len({tuple(sorted(words(text))) for text in texts}) == 1
    assert len({tuple(words(text)) for text in texts}) == len(texts)


@pytest.mark.parametrize("kind", ["synonym", "typo"])
def test_of_a_synonym_and_a_typo_both_edits_are_of_the_same_word(kind: str) -> None:
    for row in of(kind):
        columns = list(zip(*(words(text) for text in row[1:]), strict=True))
        (edited,) = [each for each in columns if len(set(each)) > 1]
        assert len(set(edited)) == 3, row
        if kind == "typo":
            word, misspelt, other = edited
            assert edits(word, misspelt) == 1, row
            assert 1 <= edits(word, other) <= 2, row
            # Nobody could take the misspelt word for the other.
            assert edits(misspelt, other) >= 2, row
            assert len(misspelt) >= len(word)


def test_the_paraphrase_of_a_changed_meaning_is_no_copy() -> None:
    for kind in KINDS[:6]:
        for row in of(kind):
            assert difference(row.sentence, row.paraphrase) != ([], [])
            # Nor does it take over the words that the change put in, where that is one word.
            left, right = difference(row.sentence, row.changed)
            if kind == "antonym":
                assert right[0] not in words(row.paraphrase), row
                assert left != right


HEROS = (
    "Original\tSynonym\tAntonym\tNegation\tRandom\tTypo\n"
    'A big owl "sang" .\tA large owl "sang" .\tA small owl "sang" .\tA big owl did not "sing" .\t'
    'A blue owl "sang" .\tA bgi owl "sang" .\n'
    "It rained hard .\tIt rained heavily .\tIt rained softly .\tIt did not rain hard .\t\tIt rianed hard .\n"
)


@pytest.mark.usefixtures("no_pauses")
def test_heros_is_fetched_from_its_address_and_read(
    site: Any, page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{site.base}/")
    place = "/datasets/dcml0714/Heros/resolve/0929565636acc37c329ad0fe0d44c5a715351427/heros.tsv"
    site.put(place, page(HEROS.encode()))
    with pytest.raises(UserError, match=r"HEROS was not found .* run `stsbench data get heros`"):
        load_triples("heros")
    fetched = get("heros")
    assert [path for path, _ in site.asked] == [place]
    assert not fetched.verified
    heros = load_triples("heros")
    assert heros.name == "HEROS"
    assert heros.rows[0] == Triple("antonym", 'A big owl "sang" .', 'A large owl "sang" .', 'A small owl "sang" .')
    assert [row.kind for row in heros.rows] == ["antonym", "antonym", "negation", "negation", "random word"] + [
        "typo"
    ] * 2
    assert heros.rows[-1] == Triple("typo", "It rained hard .", "It rianed hard .", "It rained softly .")
    unverified, left_out = heros.notes
    assert "HEROS is unverified" in unverified
    assert left_out.startswith("heros.tsv: 1 of 8 triples are left out")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "heros.tsv").write_text(HEROS.replace("\tRandom", "\tOther"), encoding="utf-8")
    with pytest.raises(UserError, match=r"heros\.tsv has no column 'random' \(its columns: 'Original', 'Synon"):
        load_triples("heros", data_dirs=[tmp_path / "own"])


ROWS = [("tense", "It rains.", "Rain falls.", "It rained."), ("typo", "A cat.", "A cta.", "A car.")]


def written(path: Path, rows: list[tuple[str, ...]], header: bool = True) -> Path:
    lines = ["\t".join(row) for row in ([COLUMNS] if header else []) + rows]
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


def test_an_own_file_is_read_with_and_without_a_header_in_any_order_of_columns(tmp_path: Path) -> None:
    named = load_triples(written(tmp_path / "mine.tsv", ROWS))
    assert named.name == "mine.tsv"
    assert named.rows == tuple(Triple(*row) for row in ROWS)
    bare = load_triples(written(tmp_path / "bare.tsv", ROWS, header=False))
    assert bare.rows == named.rows
    assert "bare.tsv has no header" in bare.notes[0]
    (tmp_path / "turned.csv").write_text(
        'Changed,note,Sentence,kind,PARAPHRASE\n"It rained.",x,It rains.,tense,Rain falls.\n', encoding="utf-8"
    )
    assert load_triples(tmp_path / "turned.csv").rows == named.rows[:1]


def test_kinds_are_kept_together_in_the_order_asked_for(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[1], ("tense", "It snows.", "Snow falls.", "It snowed.")]
    mine = written(tmp_path / "mine.tsv", rows)
    assert [row.kind for row in load_triples(mine).rows] == ["tense", "tense", "typo"]
    assert [row.kind for row in load_triples(mine, ["typo", "tense"]).rows] == ["typo", "tense", "tense"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, ("typo", "A hat.", " ", "A bat.")], r"line 4: paraphrase is empty; fill it in"),
        (lambda rows: [*rows, ("", "A hat.", "A cap.", "A bat.")], r"line 4: kind is empty; fill it in"),
        (
            lambda rows: [*rows, ("typo", "A hat.", "A aht.", "A hat.")],
            r"line 4: sentence and changed are the same text",
        ),
        (lambda rows: [*rows, ("typo", "A hat.")], r"line 4: 4 columns expected \(kind, sentence, paraphrase, "),
        (
            lambda _: [],
            r"mine\.tsv has no triple: give it one a line, with the columns kind, sentence, paraphrase",
        ),
    ],
)
def test_a_broken_file_is_told_with_its_line(
    change: Callable[[list[Any]], list[Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message) as told:
        load_triples(written(tmp_path / "mine.tsv", change(ROWS)))
    assert len(told.value.args) == 1


def test_a_kind_that_is_not_there_and_a_missing_column_are_told(tmp_path: Path) -> None:
    mine = written(tmp_path / "mine.tsv", ROWS)
    with pytest.raises(UserError, match=r"mine\.tsv has no triples of the kind 'tence': did you mean tense\?"):
        load_triples(mine, ["tence"])
    (tmp_path / "bad.csv").write_text("kind,sentence,paraphrase,other\na,b,c,d\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"bad\.csv has no column 'changed' \(its columns: 'kind', 'sentence'"):
        load_triples(tmp_path / "bad.csv")
    (tmp_path / "bad.jsonl").write_text(
        '{"kind": "a", "sentence": 3, "paraphrase": "b", "changed": "c"}\n', encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"bad\.jsonl, line 1: sentence is 3, not text"):
        load_triples(tmp_path / "bad.jsonl")
    with pytest.raises(UserError, match=r"there is no file .*none\.tsv: give bundled, heros or a file of triples"):
        load_triples(tmp_path / "none.tsv")
