"""A lexicon for the view `synonyms`: your own table, or WordNet's database."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import permutations
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.data.rows import text_lines

_WORD = re.compile(r"([\W_]*)(.*?)([\W_]*)", re.DOTALL)

_WORDNET_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")


@cache
def read_lexicon(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the synonyms of each word, in alphabetical order; keys are case-folded.

    Args:
        name: a table with `word<TAB>synonym|synonym|...` on each line (`.gz` and `.zst` are uncompressed); or a
            folder with WordNet's database (`data.noun`, `data.verb`, ...: the `dict` folder of a WordNet release,
            NLTK's `corpora/wordnet`, or Debian's `/usr/share/wordnet`), where words of one synset are synonyms.

    Raises:
        UserError: if it cannot be read or has no synonym; naming the line.
    """
    path = Path(name).expanduser()
    if not path.exists():
        raise UserError(
            f"there is no lexicon {path}: give a table of words and synonyms, or the folder of WordNet's database "
            "(Debian: `apt install wordnet-base`, then /usr/share/wordnet)."
        )
    synonyms: dict[str, set[str]] = defaultdict(set)
    for word, synonym in _wordnet(path) if path.is_dir() else _table(path):
        if word.casefold() != synonym.casefold():
            synonyms[word.casefold()].add(synonym)
    if not synonyms:
        raise UserError(f"{path} has no synonyms: write `word<TAB>synonym|synonym` on each line.")
    return {word: tuple(sorted(of_word)) for word, of_word in synonyms.items()}


def lexicon_files(name: str) -> tuple[Path, ...]:
    """Return the files of a lexicon."""
    path = Path(name).expanduser()
    return tuple(path / file for file in _WORDNET_FILES if (path / file).is_file()) if path.is_dir() else (path,)


def replaced(word: str, synonyms: Mapping[str, tuple[str, ...]], draw: Callable[[int], int | None]) -> str:
    """Return a word replaced by a synonym, with the case of the word and the punctuation around it.

    `draw` gets the number of synonyms, and returns the index of one, or None to keep the word.
    """
    match = _WORD.fullmatch(word)
    assert match is not None  # every text matches
    before, inner, after = match.groups()
    choices = synonyms.get(inner.casefold(), ())
    place = draw(len(choices)) if choices else None
    if place is None:
        return word
    synonym = choices[place]
    if len(inner) > 1 and inner.isupper():
        synonym = synonym.upper()
    elif inner[:1].isupper():
        synonym = synonym[:1].upper() + synonym[1:]
    return str(before + synonym + after)


def _table(path: Path) -> Iterator[tuple[str, str]]:
    for line, text in text_lines(path):
        if text.strip():
            word, _, listing = text.partition("\t")
            synonyms = [synonym.strip() for synonym in listing.split("|")]
            if not (word.strip() and all(synonyms)):
                raise UserError(f"{path}, line {line}: write `word<TAB>synonym|synonym`.")
            yield from ((word.strip(), synonym) for synonym in synonyms)


def _wordnet(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of single words that share a synset (wndb(5WN): offset, file, type, count, then words)."""
    files = lexicon_files(str(folder))
    if not files:
        raise UserError(f"{folder} has no WordNet database (data.noun, ...): name the folder that does.")
    for file in files:
        for line, text in text_lines(file):
            if text.startswith("  ") or not text.strip():  # the licence at the top
                continue
            fields = text.split(" ")
            try:
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            except (IndexError, ValueError) as error:
                raise UserError(
                    f"{file}, line {line}: not a line of WordNet's database; fetch it again."
                ) from error
            # An adjective may have a marker of its position: `galore(ip)`.
            plain = dict.fromkeys(word.partition("(")[0] for word in words)
            yield from permutations([word for word in plain if "_" not in word], 2)
