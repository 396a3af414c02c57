"""Does a score hold when the same sentences are typed otherwise?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisResult, CommandWithIntervals
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import DATA, DataDirs, Seed, Task, Text
from stsbench.render.charts import forest
from stsbench.render.table import Table, Tables, interval, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Wanted
    from stsbench.statistics.dependence import Sharing

    Floats = NDArray[np.float64]

FAR = 0.1
"""A pair whose rank moves by more than this share of all pairs has moved."""


class Stability(AnalysisResult):
    """What changes that leave the meaning alone do to models' scores."""

    name = "stability"
    title = "Stability"
    question = "does the score hold when the same sentences are typed otherwise?"
    look_for = "differences whose intervals hold 0, and few pairs that move"

    def table(self) -> Tables:
        """Return a row for each model and change."""
        rows = [
            {
                "model": row["model"],
                "change": row["change"],
                "sentences changed": f"{100 * row['changed']:.0f} %",
                "unchanged": row["unchanged"],
                "score": row["score"],
                "difference": row["difference"],
                "interval": interval(row["low"], row["high"]),
                "pairs moved": f"{100 * row['moved']:.1f} %",
            }
            for row in self.frame.to_dict("records")
        ]
        caption = f"Spearman x 100 of the cosines of changed sentences{place(self.frame)}"
        note = f"pairs moved: those whose rank among all moves by more than {100 * FAR:g} % of the pairs"
        return Tables([Table(pd.DataFrame(rows), caption, notes=(note,))])

    def numbers(self) -> dict[str, float]:
        """Return the difference x 100 and the share of moved pairs of each change."""
        return {
            f"{what} {row['change']}": float(row[what])
            for row in self.frame.to_dict("records")
            for what in ("difference", "moved")
        }

    def plot(self) -> "Figure":
        """Draw each change's difference to the score of the unchanged sentences, each model in its colour."""
        rows = self.frame.rename(columns={"change": "label", "model": "series", "difference": "value"})
        rows = rows.assign(filled=True, summary=False)
        return forest(rows, "difference to the score of the unchanged sentences (× 100)", reference=0)


def stability(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    task: str | None = None,
    split: str = "test",
    text: str = "raw",
    paraphrases: str | Path | None = None,
    seed: int = 0,
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Stability:
    """Score the pairs of a task again with sentences that are typed otherwise and mean the same.

    Every sentence of every pair is changed: to lower and upper case, without its final punctuation (with a full
    stop where it has none), with more white space, with typos in 5 and in 10 % of its words, and by a file of
    paraphrases.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        task: the task whose pairs are looked at; by default `STS-B`, or the sample where its data is not here.
        split: the split to use.
        text: the text to use: `senteval` (tokenised, lower-cased) or `raw`.
        paraphrases: a file with a sentence of the task and its paraphrase a line (.tsv, .csv, .jsonl, .parquet);
            other sentences stay as they are.
        seed: of the typos.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Returns:
        One row per model and `change`: `changed`, the share of the distinct sentences that the change alters;
        `unchanged` and `score`, Spearman x 100 of the cosines before and after; their `difference` with `low` and
        `high`, of the same pairs, by pairs that share a sentence; and `moved`, the share of the pairs whose rank
        among all n cosines moves by more than n / 10. `pairs`, `task`, `split` and `text` say of what.

    Raises:
        UserError: if the data is missing, no sentence of the task is in the file of paraphrases, all pairs have
            one similarity, or a sentence was never encoded and the model is not here.

    >>> found = stability(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> found.frame.loc[found.frame["change"] == "lower case", ["score", "moved"]].round(2).values.tolist()
    [[19.9, 0.01]]
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.analysis.perturbations import changes
    from stsbench.data.sentences import sentences_in
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import vectors_of
    from stsbench.scoring.tasks import read_pairs_of
    from stsbench.statistics.correlations import is_undefined
    from stsbench.statistics.dependence import Sharing
    from stsbench.statistics.similarity import pair_similarities

    subjects = analysable(runs)
    data = read_pairs_of(task, split, text, data_dirs)
    sentences = sentences_in(data)
    half = len(sentences) // 2
    made = {name: list(map(change, sentences)) for name, change in changes(seed).items()}
    if paraphrases is not None:
        made["paraphrases"] = _paraphrased(sentences, paraphrases, data.task)
    sharing = Sharing.of(sentences[:half], sentences[half:])
    distinct = len(set(sentences))
    changed = {
        name: len({old for old, new in zip(sentences, texts, strict=True) if old != new}) / distinct
        for name, texts in made.items()
    }

    every = [sentence for texts in (sentences, *made.values()) for sentence in texts]
    frames = []
    for name, subject in subjects.items():
        vectors, rows = vectors_of(subject, every, progress, data_dirs=data_dirs)
        sides = [np.split(places, 2) for places in np.split(rows, 1 + len(made))]
        whole, *others = (pair_similarities(vectors, first, second)["cosine"] for first, second in sides)
        if is_undefined(whole):
            raise UserError(
                f"{name} gives all {len(whole)} pairs of {data.task} one similarity: there is no score that a "
                "change could move."
            )
        gold, after = data.pairs["gold"].to_numpy(float), dict(zip(made, others, strict=True))
        frame = stability_frame(gold, whole, after, sharing, intervals or Intervals())
        frames.append(frame.assign(changed=frame["change"].map(changed)).assign(model=name))
    frame = pd.concat(frames, ignore_index=True)
    ordered = ["model", *(column for column in frame.columns if column != "model")]
    return Stability(frame[ordered].assign(task=data.task, split=data.split, text=data.text))


def _paraphrased(sentences: Sequence[str], path: str | Path, task: str) -> list[str]:
    from stsbench.analysis.perturbations import read_paraphrases

    known = read_paraphrases(path)
    if not any(sentence in known for sentence in sentences):
        raise UserError(
            f"{path} paraphrases no sentence of {task}: write the sentences as the task has them (--text senteval "
            "or raw)."
        )
    return [known.get(sentence, sentence) for sentence in sentences]


def stability_frame(
    gold: "Floats", whole: "Floats", after: "Mapping[str, Floats]", sharing: "Sharing", intervals: "Intervals"
) -> pd.DataFrame:
    """Hold the similarities of changed sentences against those of the sentences as they are; see `stability`.

    Args:
        gold: (n,) of the pairs.
        whole: (n,) similarities of the sentences as they are.
        after: by change, (n,) similarities of the changed sentences.
        sharing: which pairs share a sentence.
        intervals: how intervals are computed.
    """
    from stsbench.statistics.correlations import average_ranks, spearman
    from stsbench.statistics.dependence import variance
    from stsbench.statistics.influence import spearman_terms
    from stsbench.statistics.intervals import plain_interval

    before, terms, ranks = spearman(gold, whole), spearman_terms(gold, whole), average_ranks(whole)
    rows: list[dict[str, Any]] = []
    for change, similarities in after.items():
        score = spearman(gold, similarities)
        low = high = float("nan")
        if intervals.interval is not None:
            spread = variance(spearman_terms(gold, similarities) - terms, sharing, intervals.interval)
            low, high, _ = plain_interval(score - before, spread, intervals.level)
        moved = abs(average_ranks(similarities) - ranks) > FAR * len(ranks)
        rows.append(
            {
                "change": change,
                "pairs": len(gold),
                "unchanged": 100 * before,
                "score": 100 * score,
                "difference": 100 * (score - before),
                "low": 100 * low,
                "high": 100 * high,
                "moved": float(moved.mean()),
            }
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class StabilityCommand(CommandWithIntervals):
    """Score the same pairs with typos, changed case, punctuation or white space, or with your own paraphrases.

    Examples:
    * `stsbench stability runs/a runs/b --figure stability.svg`
    * `stsbench stability --model minilm --task STS16 --paraphrases mine.tsv`
    """

    verb = staticmethod(stability)
    result = Stability

    task: Task = None
    split: Annotated[str, typer.Option(help="The split.", rich_help_panel=DATA)] = "test"
    text: Text = "raw"
    paraphrases: Annotated[
        Path | None, typer.Option(help="A table with a sentence of the task and its paraphrase in each row.")
    ] = None
    seed: Seed = 0
    data_dirs: DataDirs = None
