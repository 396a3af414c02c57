"""The sample that comes with stsbench: small invented sets, so that everything runs without a download."""

from stsbench.datasets.catalogue import data_sets, source
from stsbench.datasets.lines import decode, read_bytes, split_lines
from stsbench.datasets.locate import bundled_root
from stsbench.datasets.read_sts import load_sts
from stsbench.datasets.read_transfer import load_labelled
from stsbench.datasets.tables import LabelledData, StsData
from stsbench.foundation.errors import UserError


def load_sample() -> StsData:
    """Read the sample's scored pairs (`sample/pairs.tsv`); the column `design` says what a pair tests.

    >>> sample = load_sample()
    >>> sample.task, sample.status, list(sample.pairs.columns[:4])
    ('sample', 'verified', ['subset', 'split', 'pair_id', 'gold'])
    """
    return load_sts("sample", text="sample")


def load_sample_labelled(name: str) -> LabelledData:
    """Read a labelled set of the sample (`sample/transfer/<name>.tsv`).

    Args:
        name: "movies", "products", "subjectivity", "opinions", "sentiment", "questions" or "paraphrases".

    Raises:
        UserError: if the sample has no such set.

    >>> load_sample_labelled("questions").classes
    ('ABBR', 'DESC', 'ENTY', 'HUM', 'LOC', 'NUM')
    """
    names = [task.removeprefix("sample-") for task in data_sets() if task.startswith("sample-")]
    if name not in names:
        raise UserError(f"the sample has no labelled set {name!r}: choose one of {', '.join(names)}.")
    return load_labelled(f"sample-{name}", text="sample")


def sample_sentences() -> tuple[str, ...]:
    """Return the sample's training sentences (`sample/sentences.txt`, one a line).

    >>> len(sample_sentences()) > 100
    True
    """
    path = bundled_root(source("sample")) / "sentences.txt"
    return tuple(split_lines(decode(read_bytes(path), path, "utf-8")))
