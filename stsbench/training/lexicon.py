"""A lexicon of synonyms for the view of that name: a table of one's own, or WordNet's database.

No package of the Python index was found that is well kept, brings an English lexicon along, and is read without
executing pickles; so the lexicon is a file that the person has.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import permutations
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.parsing import parse_json
from stsbench.data.rows import text_lines

_WORDNET_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")


@cache
def read_lexicon(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return the synonyms of each word in alphabetical order, by the word without case; none is its own synonym.

    Args:
        name: a table, `word<TAB>synonym|synonym|...` a line (`.gz` and `.zst` are uncompressed on the way); a
            `.json` file of an object from words to lists of synonyms; or the folder of WordNet's database files
            (`data.noun`, `data.verb`, ...: the `dict` folder of a WordNet release, NLTK's `corpora/wordnet`, or
            Debian's `/usr/share/wordnet`), where the words of one synset are synonyms.

    Raises:
        UserError: if it cannot be read or holds no synonym; naming the line.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        pairs = _wordnet(path)
    elif path.suffix == ".json":
        pairs = _object(path)
    elif path.is_file():
        pairs = _table(path)
    else:
        raise UserError(
            f"there is no lexicon {path}: give a table of words and synonyms, or the folder of WordNet's database "
            "(Debian: `apt install wordnet-base`, then /usr/share/wordnet)."
        )
    synonyms: dict[str, set[str]] = defaultdict(set)
    for word, synonym in pairs:
        if word.casefold() != synonym.casefold():
            synonyms[word.casefold()].add(synonym)
    if not synonyms:
        raise UserError(f"{path} holds no synonym: write `word<TAB>synonym|synonym` a line.")
    return {word: tuple(sorted(of_word)) for word, of_word in synonyms.items()}


def lexicon_files(name: str) -> tuple[Path, ...]:
    """Return the files of a lexicon."""
    path = Path(name).expanduser()
    return tuple(path / file for file in _WORDNET_FILES if (path / file).is_file()) if path.is_dir() else (path,)


def _table(path: Path) -> Iterator[tuple[str, str]]:
    for line, text in text_lines(path):
        if not text.strip():
            continue
        word, tab, listing = text.partition("\t")
        synonyms = [synonym.strip() for synonym in listing.split("|")]
        if not (tab and word.strip() and all(synonyms)):
            raise UserError(f"{path}, line {line}: write `word<TAB>synonym|synonym`.")
        yield from ((word.strip(), synonym) for synonym in synonyms)


def _object(path: Path) -> Iterator[tuple[str, str]]:
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path} ({error}): check the file.") from error
    wrong = f"{path} is no lexicon: write an object from words to lists of their synonyms."
    if not isinstance(content, dict):
        raise UserError(wrong)
    for word, synonyms in content.items():
        if not isinstance(synonyms, list) or not all(isinstance(name, str) and name.strip() for name in synonyms):
            raise UserError(f"{wrong} {word!r} has no such list.")
        yield from ((word.strip(), synonym.strip()) for synonym in synonyms)


def _wordnet(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of words that share a synset, words of several parts left out."""
    files = lexicon_files(str(folder))
    if not files:
        raise UserError(f"{folder} holds no WordNet database (data.noun, ...): name the folder that does.")
    for file in files:
        for line, text in text_lines(file):
            # The licence stands above, in lines that start with two spaces.
            if not text.startswith("  ") and text.strip():
                yield from permutations(_synset(text, f"{file}, line {line}"), 2)


def _synset(text: str, where: str) -> Iterable[str]:
    """Return the words of a line of WordNet's database (wndb(5WN)): offset, file, type, count, then each word."""
    fields = text.split(" ")
    try:
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
    except (IndexError, ValueError) as error:
        raise UserError(f"{where}: not a line of WordNet's database; fetch it again.") from error
    # An adjective may carry where it stands: `galore(ip)`.
    plain = [word.partition("(")[0] for word in words]
    return [word for word in dict.fromkeys(plain) if "_" not in word]
