"""A plain corpus: one sentence a line."""

from pathlib import Path

from stsbench.datasets.lines import decode, read_bytes, split_lines
from stsbench.datasets.read_sample import sample_sentences
from stsbench.foundation.errors import UserError

SAMPLE = "sample"
"""The name of the corpus that comes with stsbench."""


def load_corpus(corpus: str | Path) -> tuple[str, ...]:
    """Return the sentences of a corpus, each once, in the order of their first occurrence.

    Args:
        corpus: a UTF-8 file with one sentence a line, or `sample` for the sample's own sentences. Whitespace
            around a sentence is dropped, and so are empty lines.

    Raises:
        UserError: if the file cannot be read, is not UTF-8, or holds no sentence.

    >>> len(load_corpus("sample"))
    400
    """
    if str(corpus) == SAMPLE:
        return sample_sentences()
    path = Path(corpus).expanduser()
    lines = split_lines(decode(read_bytes(path), path, "utf-8-sig"))
    sentences = tuple(dict.fromkeys(filter(None, map(str.strip, lines))))
    if not sentences:
        raise UserError(f"{path} holds no sentence: write one a line.")
    return sentences
