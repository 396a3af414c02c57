"""`--fast`: the fastest back end and precision that cost at most half a point on the sample.

Candidates are timed against torch in fp32 on sentences of the sample. One is accepted if the one-sided 95 % bound
of its loss of Spearman's correlation stays below the margin. Signature and notes of the record state the choice.
"""

import json
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.extras import PACKAGES, missing
from stsbench.base.files import atomic_path
from stsbench.base.machine import processor
from stsbench.base.manifest import fingerprint
from stsbench.base.progress import Progress, silent
from stsbench.data.benchmarks import load_sample
from stsbench.data.sentences import sentences_in
from stsbench.encoders.cache import compiled_dir
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import FP32, TORCH, names
from stsbench.statistics import DEPENDENCE, LEVEL
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import task_terms
from stsbench.statistics.intervals import upper_bound
from stsbench.statistics.similarity import pair_similarities

if TYPE_CHECKING:
    Checkpoint = TransformerEncoder | SidedEncoder


class Candidate(NamedTuple):
    """A program and precision that may replace torch in fp32."""

    backend: str
    precision: str

    def __str__(self) -> str:
        return self.precision if self.backend == TORCH else f"{self.backend}-{self.precision}"


CANDIDATES = (
    Candidate(TORCH, "bf16"),
    Candidate("openvino", "int8"),
    Candidate("openvino", FP32),
    Candidate("onnx", FP32),
)
"""In the order in which they are tried; on a GPU the first only."""

FAST_ENOUGH = 1.8
"""A candidate this many times as fast as fp32 ends the search: few runs win back the minute of quantising."""

FASTER = 1.1
"""A smaller gain is within the noise of two timings."""

LARGEST_LOSS = 0.005
"""Of the sample's score, with the one-sided bound of 95 %."""

_TIMED, _ROUNDS = 128, 3


@dataclass(frozen=True)
class Choice:
    """The program and precision that replace torch in fp32, or torch in fp32 itself.

    Attributes:
        backend: the program.
        precision: in which it computes.
        ratio: how many times as fast as fp32 it was on the sample.
        note: the reason, in a sentence.
    """

    backend: str
    precision: str
    ratio: float
    note: str


def quickest(encoder: Encoder, progress: Progress = silent) -> "Checkpoint":
    """Returns a checkpoint in the fastest backend and precision that cost at most 0.5 points on the sample.

    The choice is kept in the cache, by weights, processing of vectors, versions and machine.

    Args:
        encoder: a Transformers checkpoint in torch and fp32.
        progress: called with the candidate that is tried.

    Raises:
        UserError: if it is another kind of model, or a back end or precision was chosen already.
    """
    first = _sides(encoder)[0]
    if not isinstance(first, TransformerEncoder):
        raise UserError(f"--fast: {encoder.identity.name} is not a Transformers checkpoint: leave out --fast.")
    if first.use.computed_in != FP32:
        raise UserError(
            f"--fast chooses the precision, but {first.use.computed_in} is given: leave out --fast, or --backend "
            "and --precision."
        )
    checkpoint: Checkpoint = encoder  # type: ignore[assignment]
    file = compiled_dir() / f"{fingerprint(_depends_on(checkpoint))[:32]}.json"
    # Without a hash of the weights, an earlier choice may be for others.
    choice = None if encoder.identity.weights_sha256 is None else _kept(file)
    if choice is None:
        choice = _choose(checkpoint, progress)
        with atomic_path(file) as place:
            place.write_text(json.dumps(asdict(choice)), encoding="utf-8")
    chosen = checkpoint.with_use(backend=choice.backend, precision=choice.precision)
    return replace(chosen, notes=(*chosen.notes, choice.note))


def _sides(encoder: Encoder) -> "list[TransformerEncoder]":
    sides: Any = encoder.sides if isinstance(encoder, SidedEncoder) else [encoder]
    return list(sides)


def _depends_on(encoder: "Checkpoint") -> dict[str, Any]:
    import torch
    from torch.backends.cpu import get_cpu_capability

    identity = encoder.identity
    packages = ["torch", *(name for extra in ("openvino", "onnx") for name in PACKAGES[extra].values())]
    versions = {}
    for package in packages:
        with suppress(ImportError):
            versions[package] = version(package)
    machine = [platform.machine(), processor(), get_cpu_capability(), torch.get_num_threads()]
    if identity.use.device == "cuda":
        machine.append(torch.cuda.get_device_name())
    model = identity.key() | {name: getattr(identity.use, name) for name in names("afterwards")}
    return {"fast": __version__, "model": model, "versions": versions, "machine": machine}


def _kept(file: Path) -> Choice | None:
    try:
        return Choice(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # none yet, or damaged: choose again
        return None


def _choose(encoder: "Checkpoint", progress: Progress) -> Choice:
    """Tries the candidates in turn and returns the fastest that passes."""
    candidates = CANDIDATES if encoder.identity.use.device == "cpu" else CANDIDATES[:1]
    best: Choice | None = None
    rejected: list[str] = []
    for number, candidate in enumerate(candidates):
        progress(f"choosing a back end: {candidate}", number, len(candidates))
        if best is not None and (best.ratio >= FAST_ENOUGH or candidate.precision == FP32):
            break
        if candidate.backend != TORCH and missing(candidate.backend):
            rejected.append(f"{candidate} is not installed (pip install 'stsbench[{candidate.backend}]')")
            continue
        try:
            other = encoder.with_use(backend=candidate.backend, precision=candidate.precision)
            ratio = _times_as_fast(encoder, other)
        except UserError as error:
            rejected.append(f"{candidate}: {str(error).rstrip('.')}")
            continue
        if ratio < max(FASTER, best.ratio if best else 0):
            rejected.append(f"{candidate} is {ratio:.2f} times as fast")
            continue
        change, loss = _change(encoder, other)
        effect = f"{100 * change:+.2f} points on the sample, a loss of at most {100 * loss:.2f}"
        if loss < LARGEST_LOSS:
            note = f"--fast: {candidate} instead of fp32, {ratio:.1f} times as fast; {effect}"
            best = Choice(candidate.backend, candidate.precision, ratio, note)
        else:
            rejected.append(f"{candidate}: {effect}")
    progress("choosing a back end", len(candidates), len(candidates))
    if best is None:
        best = Choice(TORCH, FP32, 1.0, "--fast: fp32; nothing is faster at the same score")
    return replace(best, note=best.note + (f" ({'; '.join(rejected)})" if rejected else ""))


def _times_as_fast(encoder: "Checkpoint", other: "Checkpoint") -> float:
    """Returns how many times as fast the other encodes some sentences of the sample, loading excluded.

    The two take turns and the fastest pass of each counts. Processing after encoding is not timed.
    """
    pair = [_sides(encoder)[0], _sides(other)[0]]
    texts = sentences_in(load_sample())[:_TIMED]
    for side in pair:
        embed(side, texts[:8], normalize=False, use_cache=False)
    seconds: list[list[float]] = [[], []]
    for _ in range(_ROUNDS):
        for side, taken in zip(pair, seconds, strict=True):
            start = time.perf_counter()
            embed(side, texts, normalize=False, use_cache=False)
            taken.append(time.perf_counter() - start)
    return min(seconds[0]) / min(seconds[1])


def _change(encoder: "Checkpoint", other: "Checkpoint") -> tuple[float, float]:
    """Returns the change of the sample's score, and the one-sided upper bound of the loss."""
    pairs = load_sample().pairs
    gold, subsets = pairs["gold"].to_numpy(), pd.factorize(pairs["subset"])[0]
    cosines = [_cosines(each, pairs) for each in (encoder, other)]
    before, after = (CORRELATIONS["spearman"](gold, cosine) for cosine in cosines)
    terms = [task_terms(gold, cosine, subsets, "spearman", "all") for cosine in cosines]
    sharing = Sharing.of(pairs["sentence1"], pairs["sentence2"])
    spread = variance(terms[0] - terms[1], sharing, DEPENDENCE)
    change = after - before
    if np.isnan(change) or np.isnan(spread.value):
        return float("nan"), float("inf")
    return change, -change if spread.value <= 0 else upper_bound(-change, spread, LEVEL)


def _cosines(encoder: "Checkpoint", pairs: pd.DataFrame) -> NDArray[np.float64]:
    texts = [pairs["sentence1"].tolist(), pairs["sentence2"].tolist()]
    sides = _sides(encoder)
    if len(sides) == 1:  # together, so that a whitening is over all sentences
        found = embed(sides[0], [*texts[0], *texts[1]], use_cache=False)
        (vectors,), (left, right) = found.vectors.values(), np.split(found.rows, 2)
    else:
        both = [embed(side, own, use_cache=False) for side, own in zip(sides, texts, strict=True)]
        matrices = [next(iter(found.vectors.values())) for found in both]
        vectors, left, right = np.concatenate(matrices), both[0].rows, both[1].rows + len(matrices[0])
    return pair_similarities(vectors, left, right)["cosine"]
