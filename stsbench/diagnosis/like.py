"""`diagnose_vectors`: which way of using a checkpoint gives vectors that were computed elsewhere?

Directions are compared; lengths are examined separately. Every way of feeding the texts (`inputs`) is
tried on a few short sentences that it changes; the nearest are tried on all, then pairs of them.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.diagnosis.axes import Way
from stsbench.diagnosis.inputs import ALIKE, FLOOR, PADDED, SENTENCES, Errors, Feed, Machine, Read, Setting, served
from stsbench.diagnosis.result import Likeness
from stsbench.encoders.endpoint import RefusedError
from stsbench.encoders.fitted import normalize
from stsbench.encoders.load import Model, load
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import TORCH

_EXACT, _ROUNDED = 5e-5, 4e-3
"""The largest errors in float32, and of vectors that are rounded to bf16."""

_GAIN = np.log10(2)
"""A further change must halve the errors of the sentences that it moves."""

_REORDERED, _MOVED = 0.2, 0.2
"""For reordered rows: the median error allowed, and the least share of rows that move."""

_MOST_SENTENCES, _SHORT = 100, 40


class VectorSearch:
    """Compares vectors, shape (rows, dimensions), with those of a machine in many ways.

    `rows` has the row of each of its texts; `other` names its encoder if it is not yours. Nothing is
    tried after `ends` (`time.monotonic`).
    """

    def __init__(
        self, machine: Machine, vectors: FloatMatrix, rows: NDArray[np.int64], *, other: Way, ends: float
    ) -> None:
        self.machine, self.vectors, self.rows, self.other, self.ends = machine, vectors, rows, other, ends
        self.unit, self.width = _part(vectors, "", vectors.shape[1]), vectors.shape[1]
        self.tried: dict[Feed, list[Setting]] = {}
        self.noise: dict[str, tuple[float, float]] = {}
        self._add(Way())
        if not self.tried[Feed()]:
            raise UserError(f"the vectors have {self.width} dimensions, and the model's have fewer.")
        self.default = min(self.tried[Feed()], key=lambda c: len(c.changes))

    def run(self, progress: Progress) -> Setting:
        """Returns the simplest setting that explains the vectors, or the nearest."""
        if self.best.errors.max() > _EXACT:
            yours, ways = Way(), self.machine.ways
            precisions = [way for way in ways if way[0].axis.moves == "bits"]
            self._measure_noise(precisions)
            self._consider(yours, ways, progress, most=12)
            for leader in self._leaders() if self.best.errors.max() > _EXACT else ():
                bad = leader.errors > 10 * max(float(np.quantile(leader.errors, 0.2)), FLOOR)
                self._consider(leader.way, _also(leader.way, ways), progress, most=4, few=2, among=bad)
            if not self.agree(self.best).all():
                wide = [way for way in ways if self._changed(yours, way).mean() > 0.5]
                wide.sort(key=lambda way: min(row.size for row in self.machine.inputs(way)))
                pairs = [pair for number, way in enumerate(wide) for pair in _also(way, wide[:number])]
                self._consider(yours, pairs, progress, most=4, few=2, least=_GAIN)
            self._consider(self.best.way, _also(self.best.way, precisions), progress, most=1)
        return self.best

    @property
    def candidates(self) -> list[Setting]:
        """All settings that were tried on all sentences."""
        return [candidate for of_feed in self.tried.values() for candidate in of_feed]

    @property
    def best(self) -> Setting:
        """The nearest setting in which every change is needed."""
        best = self.default
        for count in range(1, 5):
            of_count = [c for c in self.candidates if len(c.changes) == count + len(self.other)]
            nearest = min(of_count, key=lambda c: c.objective, default=best)
            best = nearest if nearest.gain(best) >= _GAIN else best
        return best

    def agree(self, candidate: Setting) -> NDArray[np.bool_]:
        """Returns for each sentence whether its vector agrees."""
        return candidate.errors <= self.precision_of(candidate)[1]

    def precision_of(self, candidate: Setting) -> tuple[str, float]:
        """Returns the precision in which most vectors agree, and the largest error in it; "" if there is none."""
        middle, feed = float(np.median(candidate.errors)), Feed(**candidate.way.fields)
        if middle <= _EXACT and not feed.precision:
            return self.machine.encoder.use.precision, _EXACT
        if middle <= _ROUNDED and (rounded := _rounded_to(self.vectors)):
            return rounded, 5 * _ROUNDED
        middles = {
            name: float(np.median(c.errors))
            for name in ("", *self.noise)
            for c in self.tried.get(replace(feed, precision=name), ())
            if c.read == candidate.read
        }
        exact = min(middles, key=lambda name: middles[name], default="")
        if exact and middles[exact] <= 0.3 * middles.get("", 1.0):
            return exact, 10 * self.noise[exact][1]
        for name, (usual, largest) in sorted(self.noise.items(), key=lambda item: item[1]):
            if middle <= 2.5 * usual:
                return name, 5 * largest
        return "", _ROUNDED

    def lengths(self, best: Setting) -> str:
        """Returns in words how the lengths of the vectors differ from yours; empty if they do not."""
        made, kept = self._made(best), slice(-self.width, None) if best.read.part == "last" else slice(self.width)
        parts = (self.vectors[self._places(best)], made[:, kept], _part(made, "", made.shape[1])[:, kept])
        given, plain, cut = (np.linalg.norm(part, axis=1) for part in parts)
        used = self.agree(best) if self.agree(best).any() else np.ones(len(given), bool)
        own = np.ones(len(given)) if self.machine.encoder.identity.normalize else plain
        factor = float(np.median(given[used] / np.maximum(own[used], 1e-30)))
        ways = {
            "": own,
            "scales vectors to unit length": np.ones(len(given)),
            "does not scale vectors to unit length": plain,
            "does not scale them to unit length again": cut,
            f"scales all vectors by {factor:.4g}": own * factor,
            "returns vectors of other lengths": given,
        }
        tolerance = max(1e-3, 5 * float(np.median(best.errors)))
        return next(w for w, v in ways.items() if np.allclose(given[used], v[used], rtol=tolerance, atol=1e-12))

    def order(self, candidate: Setting) -> str:
        """Returns the order of the rows in words."""
        unit = _part(self._made(candidate), candidate.read.part, self.width)
        sizes = np.array([len(row.ids) for row in self.machine.inputs(candidate.way)])
        keys = {"reversed": -np.arange(len(sizes)), "sorted by length": sizes, "longest first": -sizes}
        for words, key in keys.items() if len(self.unit) == len(sizes) else ():
            placed = np.argsort(np.argsort(key, kind="stable"))
            errors = np.linalg.norm(unit - self.unit[placed], axis=1)
            # Another sort may order sentences of equal length differently.
            if (errors <= candidate.errors + _EXACT).mean() > 0.8:
                return words
        return "in another order"

    def _places(self, candidate: Setting) -> NDArray[np.int64]:
        """Returns the row of each sentence."""
        unit = _part(self._made(candidate), candidate.read.part, self.width)
        return (unit @ self.unit.T).argmax(1) if candidate.read.is_moved else self.rows

    def _made(self, candidate: Setting) -> NDArray[np.float64]:
        inputs = self.machine.inputs(candidate.way)
        return self.machine.vectors(inputs)[candidate.read.pooling].astype(np.float64)

    def _leaders(self) -> list[Setting]:
        """Returns the settings that explain some sentences best."""
        best = [min(of_feed, key=lambda c: c.objective) for of_feed in self.tried.values()]
        return sorted(best, key=lambda c: float(np.quantile(c.errors, 0.2)))[:4]

    def _changed(self, before: Way, after: Way) -> NDArray[np.bool_]:
        inputs = map(self.machine.inputs, (before, after))
        return np.array([a != b for a, b in zip(*inputs, strict=True)])

    def _consider(
        self,
        before: Way,
        ways: Sequence[Way],
        progress: Progress,
        *,
        most: int,
        few: int = 4,
        least: float = 0.0,
        among: NDArray[np.bool_] | None = None,
    ) -> None:
        """Tries ways on a few short sentences that they change (`among` some), those that gain most on all."""
        gains = []
        for number, way in enumerate(ways):
            progress("trying settings", number + 1, len(ways))
            changed, inputs = self._changed(before, way), self.machine.inputs(way)
            places = np.flatnonzero(changed if among is None else changed & among)
            if Feed(**way.fields) in self.tried or not len(places) or time.monotonic() > self.ends:
                continue
            places = np.array(sorted(places, key=lambda place: inputs[place].size)[:few])
            own = [c.errors[places] for c in self.tried[Feed(**before.fields)]]
            with suppress(UserError, RuntimeError, ValueError, IndexError):  # the network cannot read it
                if (gain := _nearest(own) - _nearest(self._errors(way, places).values())) > least:
                    gains.append((-gain, number))
        for _, number in sorted(gains)[:most]:
            self._add(ways[number])

    def _add(self, way: Way) -> None:
        own, feed = self.machine.encoder.use.pooling, Feed(**way.fields)
        way = Way(change for change in way if change.fields)  # how the output is read is found anew
        floor = max(FLOOR, self.noise.get(feed.precision, (0.0, 0.0))[0])
        self.tried[feed] = []
        for read, errors in self._errors(way, np.arange(len(self.rows))).items():
            whole = way.plus(*self.other, *read.changes(own, self.width))
            self.tried[feed].append(Setting(whole, read, errors, floor))

    def _measure_noise(self, precisions: Sequence[Way]) -> None:
        """Measures by how much each precision moves short sentences: the median and the largest error."""
        places = [place for place, row in enumerate(self.machine.inputs(Way())) if row.size < _SHORT][:20]
        own = None
        for way in (Way(), *precisions):
            inputs = self.machine.inputs(way)
            made = normalize(next(iter(self.machine.vectors([inputs[place] for place in places]).values())))
            own = made if own is None else own
            errors = np.linalg.norm(made - own, axis=1)
            self.noise |= {name: (float(np.median(errors)), float(errors.max())) for name in way.fields.values()}

    def _errors(self, way: Way, places: NDArray[np.int64]) -> dict[Read, Errors]:
        """Returns the errors of some sentences for each reading."""
        inputs, rows, errors = self.machine.inputs(way), self.rows[places], {}
        for pooling, vectors in self.machine.vectors([inputs[place] for place in places]).items():
            if vectors.shape[1] < self.width or pooling.endswith(PADDED) != way.fields.get("pooled", False):
                continue
            for part in ("first", "last") if vectors.shape[1] > self.width else ("",):
                unit = _part(vectors, part, self.width)
                errors[Read(pooling, part)] = distances = np.linalg.norm(unit - self.unit[rows], axis=1)
                nearest = (unit @ self.unit.T).argmax(1)
                moved = np.linalg.norm(unit - self.unit[nearest], axis=1)
                if np.median(moved) < _REORDERED and (moved < 0.5 * distances).mean() > _MOVED:
                    errors[Read(pooling, part, True)] = np.minimum(moved, distances)
        return errors


def _also(way: Way, others: Iterable[Way]) -> list[Way]:
    """Returns a way with each single change of another axis."""
    axes = {change.axis for change in way}
    return [way.plus(*other) for other in others if other[0].axis not in axes]


def _nearest(errors: Iterable[Errors]) -> float:
    """Returns the mean logarithm of the errors of the nearest reading."""
    return min((float(np.log10(np.maximum(e, FLOOR)).mean()) for e in errors), default=0.0)


def _part(vectors: Any, part: str, width: int) -> NDArray[np.float64]:
    """Returns some dimensions of vectors, scaled to unit length."""
    kept: Any = (vectors[:, -width:] if part == "last" else vectors[:, :width]).astype(np.float64)
    unit: Any = normalize(kept)
    return unit  # type: ignore[no-any-return]


def _rounded_to(vectors: FloatMatrix) -> str:
    """Returns the half precision that represents vectors exactly; empty if there is none."""
    if (np.ascontiguousarray(vectors).view(np.uint32) & 0xFFFF == 0).all():
        return "bf16"
    with np.errstate(over="ignore"):
        return "fp16" if (vectors.astype(np.float16).astype(np.float32) == vectors).all() else ""


def diagnose_vectors(
    encoder: Model,
    like: Any,
    sentences: Sequence[str] | None = None,
    *,
    other: Model | None = None,
    budget: float = 60.0,
    progress: Progress = silent,
) -> Likeness:
    """Finds the way of using a checkpoint that gives vectors computed elsewhere.

    Args:
        encoder: what `load` accepts; its setting is yours.
        like: the vectors, shape (sentences, dimensions), a .npy file of them, or what `load` accepts, such as an
            endpoint.
        sentences: the text of each row; by default fifty of ours, `stsbench.testing.SENTENCES`.
        other: another checkpoint or revision that may have given the vectors.
        budget: seconds after which the search stops.
        progress: receives the progress of each stage.

    Raises:
        UserError: if the vectors cannot be read, or are not one per sentence.
    """
    given = SENTENCES if sentences is None else tuple(sentences)
    subject, texts, vectors = _read_vectors(like, given)
    order = np.argsort([len(text) for text in texts], kind="stable")
    # Evenly over all lengths.
    rows = np.sort(order[np.linspace(0, len(texts) - 1, min(len(texts), _MOST_SENTENCES)).astype(int)])
    chosen, ends = [texts[row] for row in rows], time.monotonic() + budget
    search = VectorSearch(Machine(_readable(encoder), chosen), vectors, rows, other=Way(), ends=ends)
    best, yours = search.run(progress), search.default
    if other is not None and not search.agree(best).all():
        change = served("model").change(f"uses {other.identity.name if isinstance(other, Encoder) else other}")
        machine, way = Machine(_readable(other), chosen), Way([change])
        second = VectorSearch(machine, vectors, rows, other=way, ends=ends + budget)
        if (nearest := second.run(progress)).gain(best) >= _GAIN:
            search, best = second, nearest
    return _answer(search, best, yours, subject, refused=len(given) - len(texts))


def _readable(model: Model) -> TransformerEncoder:
    encoder = load(model)
    if isinstance(encoder, TransformerEncoder) and encoder.use.backend == TORCH and not encoder.use.own_template:
        return encoder
    raise UserError(
        f"{encoder.identity.name}: --like needs a Transformers checkpoint, without --template and --backend. If a "
        "library encodes it, choose its --pooling."
    )


def _answer(search: VectorSearch, best: Setting, yours: Setting, subject: str, *, refused: int) -> Likeness:
    precision, largest = search.precision_of(best)
    equal = (
        c
        for c in search.candidates
        if len(c.changes) == len(best.changes) and np.abs(c.decrease(best)).mean() < ALIKE
    )

    def words(setting: Setting) -> str:
        labels = [change.label for change in setting.changes]
        # The order is the last change.
        return listed(
            [*labels[:-1], f"returns the rows {search.order(best)}"] if setting.read.is_moved else labels
        )

    named, *alike = dict.fromkeys((words(best), *map(words, equal)))
    also = f" (or {'; or '.join(alike[:4])}: these sentences do not distinguish them)" if alike else ""
    changes = tuple(filter(None, [named and named + also, search.lengths(best)]))
    nearest = sorted(search.candidates, key=lambda c: c.objective)
    rows = [
        {
            "setting": str(c.way) or "yours",
            "agree": int((c.errors <= largest).sum()),
            "error of these": float(c.errors[c.errors <= largest].max(initial=0.0)),
            "median error": float(np.median(c.errors)),
            "largest error": float(c.errors.max()),
        }
        for c in [best, yours, *nearest][:30]
    ]
    notes = [f"The server refuses {refused} of the sentences: they are left out."] if refused else []
    if time.monotonic() > search.ends:
        notes.append("Not all settings were tried for lack of time: raise --budget.")
    columns = {"sentence": search.machine.texts, "your error": yours.errors, "nearest": best.errors}
    return Likeness(
        subject=subject,
        changes=changes,
        precision=precision,
        explained=bool(precision) and bool((best.errors <= largest).mean() >= 0.8),
        settings=pd.DataFrame(rows).drop_duplicates("setting"),
        sentences=pd.DataFrame(columns),
        notes=tuple(notes),
    )


def _read_vectors(like: Any, texts: Sequence[str]) -> tuple[str, Sequence[str], FloatMatrix]:
    """Returns what gave the vectors, as the start of a sentence, the texts that it accepts, and the vectors."""
    subject = "The program that made the vectors"
    if isinstance(like, str | Path) and Path(like).suffix == ".npy":
        try:
            like = np.load(Path(like).expanduser())
        except (OSError, ValueError) as error:
            raise UserError(f"{like} is not a .npy file of numbers: save it with numpy.save.") from error
    elif not isinstance(like, np.ndarray):
        subject, encoder = "The server", load(like)
        for left in range(len(texts) // 5, -1, -1):
            try:
                embedded = embed(encoder, texts, normalize=False, use_cache=False)
                break
            except RefusedError as error:  # some servers refuse long texts instead of cutting them
                if not left:
                    raise
                texts = [text for text in texts if text != error.text]
        like = next(iter(embedded.vectors.values()))[embedded.rows]
    is_valid = like.ndim == 2 and len(like) == len(texts) > 0 and like.dtype.kind in "fiu"
    if not is_valid or not np.isfinite(like).all():
        raise UserError(
            f"there are vectors ({like.dtype}) of shape {like.shape} for {len(texts)} sentences: save one per "
            "sentence, in their order, with finite numbers."
        )
    return subject, texts, np.ascontiguousarray(like, dtype=np.float32)
