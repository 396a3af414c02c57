"""`repetition_bias`: do repeated words make sentences look more alike?"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.analysis.repetition_bias.numbers import Q_S1, Q_S2, QUERIES, RISE, TOGETHER, figure, views
from stsbench.analysis.repetition_bias.numbers import repetition_bias as analyse
from stsbench.analysis.repetition_bias.pairs import RepetitionProbe, Triple, Units, whole_word
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.corpus import load_corpus
from stsbench.encoders.protocol import Encoder
from stsbench.published.catalogue import rows_of, systems, table
from stsbench.records.record import RunRecord
from stsbench.scoring.sts import Bootstrap
from stsbench.scoring.subjects import Subject, Wanted, named_subjects
from stsbench.scoring.vectors import RecordedModel, vectors_of
from stsbench.statistics.bootstrap import generator
from stsbench.statistics.estimates import Resampling
from stsbench.statistics.similarity import pair_similarities

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Bootstrap", "figure", "repetition_bias", "views"]

_MEASURES = {"q-s1": Q_S1, "q-s2": Q_S2, "delta": RISE}
"""The columns of the paper's table, and what they hold."""


def repetition_bias(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    corpus: str | Path = "sample",
    queries: int = 100,
    seeds: int = 5,
    seed: int = 0,
    low: float = 0.13,
    high: float = 0.17,
    share_of: str = "candidate",
    tokens: str = "words",
    published: bool = False,
    bootstrap: Bootstrap | None = None,
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Probe runs or models for repetition bias (ESimCSE COLING 2022, table 8).

    For each query a candidate is drawn among the sentences that share 13 to 17 % of their tokens with it; the
    words they share are repeated in the candidate, and the cosine to the query is compared before and after.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        corpus: a file with one sentence a line, or `sample`.
        queries: how many, for each seed.
        seeds: how many draws of queries and candidates.
        seed: the first of their seeds.
        low: smallest overlap, as a share.
        high: largest overlap.
        share_of: `candidate` (of its tokens those that occur in the query) or `query`.
        tokens: `words` (between spaces, whatever their case) or `subwords`, of the first model's tokeniser; with
            them, words all of whose sub-words are shared are repeated.
        published: whether the paper's rows stand beside them.
        bootstrap: resamples, level and seed of the intervals over queries.
        progress: told how far it is.
        options: how to load models, as in `load`.

    Returns:
        A tidy table; see `stsbench.analysis.repetition_bias.numbers.repetition_bias`. `corpus` names the file.

    Raises:
        UserError: if too few sentences have a candidate (saying how many), or a sentence was never encoded and the
            model is not here.

    >>> frame = repetition_bias(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], queries=10, seeds=2)
    >>> frame["seed"].unique().tolist()
    ['0', '1', 'all']
    """
    import pandas as pd

    if queries < 1 or seeds < 1:
        raise UserError(f"{queries} queries and {seeds} seeds: give at least one of each.")
    subjects = named_subjects(runs, **options)
    units = units_of(tokens, next(iter(subjects.values())))
    probe = RepetitionProbe(load_corpus(corpus), units=units, share_of=share_of, low=low, high=high)
    drawn = {
        number: probe.draw(queries, generator(number, "repetition"), progress)
        for number in range(seed, seed + seeds)
    }
    cosines = {
        name: [_cosines(subject, triples, progress) for triples in drawn.values()]
        for name, subject in subjects.items()
    }
    chosen = bootstrap or Bootstrap()
    frame = analyse(cosines, list(drawn), Resampling(chosen.resamples, chosen.level, chosen.seed))
    frame = pd.concat([frame, _published_rows()], ignore_index=True) if published else frame
    return frame.assign(corpus=Path(corpus).name)


def _cosines(subject: Subject, triples: Sequence[Triple], progress: Progress) -> tuple[Any, Any]:
    vectors, rows = vectors_of(subject, [text for triple in triples for text in triple], progress)
    query, candidate, repeated = rows.reshape(-1, 3).T
    first, second = (pair_similarities(vectors, query, other)["cosine"] for other in (candidate, repeated))
    return first, second


def units_of(tokens: str, subject: Subject) -> Units:
    """Return what a word consists of when overlap is counted: itself, or a model's sub-words.

    Raises:
        UserError: if there is no such unit, or the model has no tokeniser.
    """
    if tokens == "words":
        return whole_word
    if tokens != "subwords":
        raise UserError(f"overlap in {tokens!r}: choose words or subwords.")
    encoder: Encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
    encoder.prepare(weights=False)
    around = _sequence(encoder, "")

    def subwords(word: str) -> Sequence[Hashable]:
        # What stands around any text, special tokens and prompt, is what the empty text has too.
        sequence = _sequence(encoder, word)
        start = next((at for at, (a, b) in enumerate(zip(sequence, around, strict=False)) if a != b), len(around))
        return sequence[start : len(sequence) - (len(around) - start)]

    return subwords


def _sequence(encoder: Encoder, text: str) -> tuple[Hashable, ...]:
    (sequence,) = encoder.tokenize([text]).sequences
    if isinstance(sequence, str):
        raise UserError(f"{encoder.identity.name} has no tokeniser: count overlap in words.")
    return sequence


def _published_rows() -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(
        {
            "model": f"{systems()[cell.system].title} (published)",
            "seed": TOGETHER,
            "measure": _MEASURES[cell.column],
            "interval": QUERIES,
            "queries": 100,
            "value": cell.score,
        }
        for row in rows_of(table("esimcse-coling2022-8"))
        for cell in row.cells
    )
