"""Geometry: alignment and uniformity, and their plane (SimCSE 2021, figures 2 and 3)."""

from collections.abc import Iterator, Mapping
from math import isnan, nan

from stsbench.analysis.base import OfSentences, Row
from stsbench.analysis.inputs import Answer, PairVectors, parameter
from stsbench.cli.options import LARGEST
from stsbench.records.kinds import STS
from stsbench.records.record import RunRecord
from stsbench.render.figures import Figure, colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place
from stsbench.scoring.subjects import Subject
from stsbench.statistics.geometry import alignment, mean_cosine, uniformity
from stsbench.statistics.neighbours import zero_rows


class Geometry(OfSentences):
    """Measure alignment, uniformity and the mean cosine of random pairs on the sentences of STS-B.

    The figure shows uniformity against alignment, with each run's STS score in brackets.

    Returns:
        One row per model, with `alignment`, `uniformity`, `mean_cosine`, `sts` (a run's average x 100, or else its
        score on this task), `positive_pairs`, `sentences` and `zero_sentences` (left out, as zero vectors have
        no direction). Numbers without pairs are NaN.

    >>> from stsbench import geometry
    >>> plane = geometry(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> plane.frame["sentences"].tolist()
    [504]
    """

    answer = Answer("How alike are random sentences?", column="mean_cosine")
    title = "Alignment and uniformity"
    examples = ("stsbench explain geometry -m training/step-25 -m training/step-50 --joined --figure path.svg",)

    positive: float = parameter(
        4.0, "Pairs with a gold score above this are positive.", limits=(-LARGEST, LARGEST)
    )
    joined: bool = parameter(
        False, "Join the models by a line, such as the checkpoints of a training.", flags=("--joined",)
    )

    scores: Mapping[str, float] = {}
    """STS scores x 100 by model."""

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, PairVectors]:
        vectors = super().inputs(subjects)
        self.scores = {name: score_beside(subject, self.constants["task"]) for name, subject in subjects.items()}
        return vectors

    def measure(self, model: str, given: PairVectors) -> Iterator[Row]:
        usable = ~zero_rows(given.vectors)
        sentences = given.rows[usable[given.rows]]
        pairs = given.rows.reshape(2, -1)
        close = (given.gold > self.positive) & usable[pairs].all(axis=0)
        left, right = given.vectors[pairs[:, close]]
        vectors, enough = given.vectors[sentences], len(sentences) > 1
        yield {
            "alignment": alignment(left, right) if close.any() else nan,
            "uniformity": uniformity(vectors, progress=self.progress) if enough else nan,
            "mean_cosine": mean_cosine(vectors) if enough else nan,
            "sts": self.scores.get(model, nan),
            "positive_pairs": int(close.sum()),
            "sentences": len(sentences),
            "zero_sentences": len(given.rows) - len(sentences),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        if self.frame["alignment"].notna().all():
            return ()
        return (f"No alignment without pairs that have a gold score above {self.positive:g}: set --positive.",)

    def table(self) -> Tables:
        heads = {"sts": "STS", "zero_sentences": "zero vectors"}
        table = self.frame.drop(columns=["task", "split", "text"], errors="ignore")
        table = table.rename(columns=lambda name: heads.get(name, name.replace("_", " ")))
        lacking = {"STS": table["STS"].isna().all(), "zero vectors": not table["zero vectors"].any()}
        table = table.drop(columns=[name for name, is_lacking in lacking.items() if is_lacking])
        meaning = "lower is better; mean cosine over all pairs of sentences"
        caption = f"Alignment and uniformity{place(self.frame)} ({meaning})"
        return Tables([Table(table, caption, 3, notes=self.notes)])

    def plot(self) -> Figure:
        """Draws models in the plane of uniformity and alignment, with their STS scores in brackets."""
        known = self.frame.dropna(subset=["alignment", "uniformity"])
        palette = colours(list(known["model"]))
        with style():
            figure = new_figure(height=2.6)
            axes = figure.subplots()
            if self.joined:
                axes.plot(known["uniformity"], known["alignment"], color="0.4", linewidth=0.8, zorder=1)
            for row in known.to_dict("records"):
                label = row["model"] if isnan(row["sts"]) else f"{row['model']} ({row['sts']:.2f})"
                axes.scatter(row["uniformity"], row["alignment"], s=24, label=label, color=palette[row["model"]])
            # Ticks of close models have many digits, which need room.
            axes.locator_params(axis="x", nbins=4)
            axes.set_xlabel("uniformity (lower is better)")
            axes.set_ylabel("alignment (lower is better)")
            axes.margins(0.12)
            legend_above(figure, axes)
        return figure


def score_beside(subject: Subject | None, task: str) -> float:
    """Returns a run's average x 100, or else its score on the task; NaN for models without either."""
    if not isinstance(subject, RunRecord):
        return nan
    scored = subject.average(STS) or next((score for score in subject.scores_of(STS) if score.task == task), None)
    return nan if scored is None or scored.value is None else 100 * scored.value
