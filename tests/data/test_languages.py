"""Scripts are counted letter by letter; a language is guessed of many sentences together, and told as a guess."""

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from stsbench.data.describe import describe, languages, scripts

TEXTS = ["An owl naps!", "сова спит 12", "猫が寝る。", "고양이", "ὁ λύκος", "ｱ"]


def test_each_letter_counts_for_its_script_and_nothing_else_counts() -> None:
    letters = Counter({"Latin": 9, "Cyrillic": 8, "Han": 2, "Hiragana": 2, "Hangul": 3, "Greek": 6, "Katakana": 1})
    found = scripts(TEXTS)
    assert found == pytest.approx({name: count / letters.total() for name, count in letters.items()})
    assert list(found)[:2] == ["Latin", "Cyrillic"]
    assert scripts(["12 !", ""]) == {}


@pytest.fixture
def guesser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for py3langid; return what it is asked."""
    asked: list[str] = []

    def classify(text: str) -> tuple[str, float]:
        asked.append(text)
        return ("de" if "der" in text else "en"), 0.0

    monkeypatch.setitem(sys.modules, "py3langid", SimpleNamespace(classify=classify))
    return asked


def test_sentences_are_guessed_in_groups_of_twenty_and_not_all_of_a_large_file(guesser: list[str]) -> None:
    assert languages(["an owl"] * 60 + ["der Uhu"] * 20) == {"en": 0.75, "de": 0.25}
    assert guesser[0] == " ".join(["an owl"] * 20)
    guesser.clear()
    languages(["an owl"] * 20 * 1000)
    assert len(guesser) == 200
    guesser.clear()
    assert languages([]) == {}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "own.tsv"
    path.write_text("an owl\tder Uhu\t1\na bus\tder Bus\t2\n", encoding="utf-8")
    return path


def test_a_description_tells_the_language_of_either_side_as_a_guess(table: Path, guesser: list[str]) -> None:
    about = describe(table)
    assert about.value("language of sentence1, guessed", "% en") == 100
    assert about.value("language of sentence2, guessed", "% de") == 100
    assert about.value("script", "% Latin") == 100
    assert any("py3langid's guess" in note for note in about.notes)
    assert "language of sentence2, guessed" in about.card()


def test_without_the_library_no_language_is_told_and_how_to_get_it_is(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    about = describe(table)
    assert not about.frame["about"].str.startswith("language").any()
    assert about.value("script", "% Latin") == 100
    assert any("pip install 'stsbench[language]'" in note for note in about.notes)


def test_the_library_itself_knows_four_languages() -> None:
    pytest.importorskip("py3langid", reason="needs the extra `language`")
    for language, text in {
        "en": "The old man was reading the newspaper in the kitchen.",
        "de": "Der alte Mann las in der Küche die Zeitung.",
        "fr": "Le vieil homme lisait le journal dans la cuisine.",
        "zh": "那位老人正在厨房里看报纸。",
    }.items():
        assert languages([text] * 20) == {language: 1.0}
