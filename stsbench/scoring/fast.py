"""`--fast`: the quickest program and precision at hand that tells what fp32 tells, as far as the sample shows.

Candidates encode sentences of the sample, and are timed on them against fp32; what has to be quantised only where
nothing else is fast enough. The quickest has to pass the gate of `run --gate` on the sample: with the one-sided
bound of 95 % it loses no more than half a point. Then it measures in place of fp32, and signature and notes of the
record say so; where none passes, fp32 does.
"""

import json
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

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
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.use import FP32, TORCH, USUAL, Use, names
from stsbench.records.provenance import threads
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.scoring.measure import measure_encoder
from stsbench.scoring.settings import MARGIN, Intervals, Settings, Stages
from stsbench.scoring.statistic import sharing_of, statistic_of
from stsbench.scoring.tasks import read_data
from stsbench.statistics.dependence import DEPENDENCE, LEVEL, variance
from stsbench.statistics.intervals import upper_bound

if TYPE_CHECKING:
    from stsbench.encoders.sides import SidedEncoder
    from stsbench.encoders.transformer import TransformerEncoder

    Checkpoint = TransformerEncoder | SidedEncoder


class Candidate(NamedTuple):
    """What could compute in place of torch in fp32."""

    backend: str
    precision: str

    def __str__(self) -> str:
        return self.precision if self.backend == TORCH else f"{self.backend}-{self.precision}"


AT_ONCE = (Candidate(TORCH, "bf16"),)
QUANTISED = (Candidate("openvino", "int8"),)
COMPILED = (Candidate("openvino", FP32), Candidate("onnx", FP32))
"""Tried one group after the other: the second unless one of the first is `ENOUGH`, the third if none passes.

On a GPU the first alone.
"""

ENOUGH = 1.8
"""How many times as fast as fp32 one is that is taken at once: few runs win back the minute of quantising."""

WORTH_IT = 1.1
"""How many times as fast as fp32 a candidate has to be: less is within what two timings differ by."""

TIMED, ROUNDS = 128, 3
"""Sentences that are timed, and how often."""


@dataclass(frozen=True)
class Choice:
    """What computes in place of torch in fp32, or that nothing does.

    Attributes:
        backend: the program.
        precision: in which it computes.
        ratio: how many times as fast as fp32 it was on the sample; 1 of fp32 itself.
        said: why, in a sentence.
    """

    backend: str
    precision: str
    ratio: float
    said: str


def quickest(encoder: Encoder, progress: Progress = silent, use: Use = USUAL) -> "Checkpoint":
    """Return a checkpoint as the quickest program at hand computes it that passes the gate, with a note of it.

    The choice is kept in the cache, by weights, what is done to vectors, versions and machine, and so is what was
    compiled for it.

    Args:
        encoder: a checkpoint of layers, as torch computes it in fp32.
        progress: told which candidate is tried.
        use: what is done to its vectors, where that is asked for beside the encoder.

    Raises:
        UserError: if it is none whose layers another program could compute, or back end or precision were chosen.
    """
    from stsbench.encoders.sides import SidedEncoder
    from stsbench.encoders.transformer import TransformerEncoder

    first = encoder.sides[0] if isinstance(encoder, SidedEncoder) else encoder
    if not isinstance(encoder, TransformerEncoder | SidedEncoder) or not isinstance(first, TransformerEncoder):
        raise UserError(
            f"--fast: {encoder.identity.name} is no checkpoint whose layers another program could compute: leave "
            "it out."
        )
    if first.use.computed_in != FP32:
        raise UserError(
            f"--fast chooses what computes, and {first.use.computed_in} was chosen: leave out --fast, or "
            "--backend and --precision."
        )
    how = encoder.identity.use.processed(use)
    file = compiled_dir() / f"{fingerprint(_depends_on(encoder.identity, how))[:32]}.json"
    # Of weights that are not hashed nobody knows if a choice was for them.
    choice = None if encoder.identity.weights_sha256 is None else _kept(file)
    if choice is None:
        choice = _choose(encoder, how, progress)
        with atomic_path(file) as being_made:
            being_made.write_text(json.dumps(asdict(choice)), encoding="utf-8")
    chosen = encoder.with_use(backend=choice.backend, precision=choice.precision)
    return replace(chosen, notes=(*chosen.notes, choice.said))


def _depends_on(identity: Identity, use: Use) -> dict[str, Any]:
    """Return what a choice depends on: the model as it is used, the packages, the machine."""
    import torch
    from torch.backends.cpu import get_cpu_capability

    packages = ["torch", *(name for extra in ("openvino", "onnx") for name in PACKAGES[extra].values())]
    versions = {}
    for package in packages:
        with suppress(ImportError):
            versions[package] = version(package)
    machine = [platform.machine(), processor(), get_cpu_capability(), threads()]
    if use.device == "cuda":
        machine.append(torch.cuda.get_device_name())
    vectors = {name: getattr(use, name) for name in names("afterwards")}
    model = {**identity.key(), **vectors}
    return {"fast": __version__, "model": model, "versions": versions, "machine": machine}


def _kept(file: Path) -> Choice | None:
    """Return the choice that is kept, None if there is none, or it is damaged: then it is made again."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return Choice(str(kept["backend"]), str(kept["precision"]), float(kept["ratio"]), str(kept["said"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _choose(encoder: "Checkpoint", use: Use, progress: Progress) -> Choice:
    groups: Sequence[Sequence[Candidate]] = (AT_ONCE, QUANTISED, COMPILED) if use.device == "cpu" else (AT_ONCE,)
    total = sum(map(len, groups))
    plain: RunRecord | None = None
    best: Choice | None = None
    refused: list[str] = []
    done = 0
    for group in groups:
        if best is not None and (best.ratio >= ENOUGH or group is COMPILED):
            break
        timed: list[tuple[float, Candidate]] = []
        for candidate in group:
            progress(f"choosing what computes: {candidate}", done, total)
            done += 1
            if candidate.backend != TORCH and missing(candidate.backend):
                refused.append(f"{candidate} is not installed (pip install 'stsbench[{candidate.backend}]')")
                continue
            try:
                ratio = _times_as_fast(encoder, _as(encoder, candidate))
            except UserError as error:
                refused.append(f"{candidate}: {str(error).rstrip('.')}")
                continue
            if ratio < WORTH_IT:
                refused.append(f"{candidate} takes {1 / ratio:.2f} times as long")
            elif best is None or ratio > best.ratio:
                timed.append((ratio, candidate))
        for ratio, candidate in sorted(timed, reverse=True):
            plain = _scored(encoder, use) if plain is None else plain
            change, loss = _change(plain, _scored(_as(encoder, candidate), use))
            moved = (
                f"its score on the sample moves by {100 * change:+.2f} points, a loss of at most {100 * loss:.2f}"
            )
            if loss < MARGIN / 100:
                said = f"--fast: {candidate} in place of fp32, {ratio:.1f} times as fast on the sample; {moved}"
                best = Choice(candidate.backend, candidate.precision, ratio, said)
                break
            refused.append(f"{candidate}: {moved}, which may be more than {MARGIN:g}")
    progress("choosing what computes", total, total)
    if best is None:
        best = Choice(TORCH, FP32, 1.0, "--fast: fp32, as nothing at hand is faster and tells the same")
    return replace(best, said=best.said + _others(refused))


def _others(refused: Sequence[str]) -> str:
    return f" ({'; '.join(refused)})" if refused else ""


def _as(encoder: "Checkpoint", candidate: Candidate) -> "Checkpoint":
    return encoder.with_use(backend=candidate.backend, precision=candidate.precision)


def _times_as_fast(encoder: "Checkpoint", candidate: "Checkpoint") -> float:
    """Return how many times as fast a candidate encodes some sentences, once all is loaded or compiled.

    The two take turns and the quickest pass of each counts, as other work on the machine comes and goes. What is
    done to vectors afterwards is not timed: eight sentences cannot be whitened as a task can.
    """
    from stsbench.encoders.sides import SidedEncoder

    sides = [each.sides[0] if isinstance(each, SidedEncoder) else each for each in (encoder, candidate)]
    texts = sentences_in(load_sample())[:TIMED]
    for side in sides:
        embed(side, texts[:8], normalize=False, use_cache=False)
    taken: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for side, seconds in zip(sides, taken, strict=True):
            start = time.perf_counter()
            embed(side, texts, normalize=False, use_cache=False)
            seconds.append(time.perf_counter() - start)
    return min(taken[0]) / min(taken[1])


def _scored(encoder: "Checkpoint", use: Use) -> RunRecord:
    settings = Settings(use=use, intervals=Intervals(None), use_cache=False)
    return measure_encoder(encoder, read_data("sample", protocol=settings.protocol), settings, Stages(silent))


def _change(plain: RunRecord, other: RunRecord) -> tuple[float, float]:
    """Return by how much a score is higher than fp32's, and the one-sided upper bound of what it loses."""
    statistic = statistic_of(Signature.parse(plain.scores[0].signature))
    items = [record.items for record in (plain, other)]
    change = statistic.value(items[1]) - statistic.value(items[0])
    spread = variance(statistic.terms(items[0]) - statistic.terms(items[1]), sharing_of(items[0]), DEPENDENCE)
    if np.isnan(change) or np.isnan(spread.value):
        return float("nan"), float("inf")
    return change, -change if spread.value <= 0 else upper_bound(-change, spread, LEVEL)
