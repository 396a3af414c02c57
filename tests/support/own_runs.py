"""Small runs whose models are files of word vectors and whose tasks are files of pairs."""

from typing import Any

import numpy as np

from stsbench.analysis import analysis
from stsbench.analysis.base import Analysis
from stsbench.data.benchmarks import load_sample
from stsbench.data.corpus import load_corpus
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import load_pairs

VOCABULARY = ("owl", "bus", "kettle", "rain", "a", "the", "sings", "leaves", "naps", "slowly", "tonight", "again")

OWN_SIMILARITY = ("length-bias", "pair-kinds", "ties", "threshold")
"""Analyses of a run's own similarities; the others need vectors or cosines."""

_OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"task": "sample"} for name in ("geometry", "spectrum", "evalrank", "stability")},
    "length-bias": {"bins": [0, 4]},
    "density": {"task": "pairs"},
    "repetition-bias": {"queries": 5, "seeds": 1},
    "probes": {"kinds": ["negation"]},
    "retrieve": {"query": "the owl sings", "k": 3},
    "compress": {"sizes": [4], "draws": 2},
}
_OF_FILES = ("compress", "dimensions", "hubness", "length-collapse", "pair-kinds")


def write_pairs(path, pairs=90, seed=0, top=1.0):
    """Write scored pairs of invented sentences, with gold scores from 0 to `top`."""
    path.parent.mkdir(exist_ok=True)
    rng, rows = np.random.default_rng(seed), []
    for _ in range(pairs):
        first, second = (" ".join(rng.choice(VOCABULARY, size=rng.integers(3, 16))) for _ in range(2))
        rows.append(f"{first}\t{second}\t{top * rng.integers(0, 11) / 10:.2f}\n")
    path.write_text("sentence1\tsentence2\tscore\n" + "".join(rows), encoding="utf-8")
    return load_pairs(path)


def write_words(path, seed=0):
    """Write vectors of the words of the sample and of invented sentences."""
    texts = [*sentences_in(load_sample()), *load_corpus("sample")]
    words = sorted({word for text in texts for word in text.lower().split()} | set(VOCABULARY))
    vectors = np.random.default_rng(seed).normal(0.2, 1, size=(len(words), 8))
    rows = (f"{word} {' '.join(f'{x:.3f}' for x in of)}\n" for word, of in zip(words, vectors, strict=True))
    path.write_text("".join(rows), encoding="utf-8")
    return path


def options_of(name, folder):
    """Return the options of an analysis of runs on files below a folder."""
    return _OPTIONS.get(name, {}) | ({"data": sorted(folder.glob("*/*.tsv"))} if name in _OF_FILES else {})


def analyse(name, folder, *runs):
    """Return an analysis of runs on files below a folder."""
    result: Analysis = analysis(name).verb(list(runs), **options_of(name, folder))
    return result
