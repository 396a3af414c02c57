"""Each method's training step against SimCSE's, in one run, with the passes that it needs as the yardstick.

    python benchmarks/train_methods.py --corpus FILE [--steps 12] [--rounds 2] [--methods simcse,mocose]

The methods take turns, round by round, on the same rows; medians over all steps but the first two of each turn.
The yardstick is counted, not timed: padded tokens that go forward through an encoder, at 1 each; back through it
to all weights, at 2; and back to the word embeddings alone, as the proper FGSM does, at 1. A step that takes 1.5
times SimCSE's where the passes are 1.5 times as many costs nothing beside them. What lies outside forward and
backward passes (reading, views, losses, queue, optimiser, the target's update) is timed apart; the aim: under 5 %.

The tables of the multi-task recipe are rows of the corpus with labels that go round: what a step costs depends on
their lengths, and not on what they say.

On a machine that does other work too, set OMP_NUM_THREADS=1, and mistrust the ratios.
"""

import argparse
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from train_speed import WARM, Clock, prepare

from stsbench.data.corpus import corpus_file, read_rows
from stsbench.encoders.checkpoint import PACKAGED
from stsbench.training import base as networks
from stsbench.training import objectives
from stsbench.training.base import Base
from stsbench.training.batches import TokenStore
from stsbench.training.distributed import World
from stsbench.training.labelled import LabelledRows, LabelledTask
from stsbench.training.model import Forward
from stsbench.training.recipe import Recipe, read_recipe
from stsbench.training.trainer import Trainer

CONSERT = (
    "dropout=0",
    "objective={loss: nt-xent, temperature: 0.1}",
    "noise.query.parts=[{kind: feature-cutoff, rate: 0.2, count: share, place: layer}]",
    "noise.key.parts=[position-shuffle]",
)
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "simcse": ("minilm-simcse", ()),
    "esimcse": ("minilm-esimcse", ()),
    "gaussian": ("minilm-gaussian", ()),
    "consert": ("minilm-simcse", CONSERT),
    "multitask": ("minilm-multitask", ()),
    "mocose": ("minilm-mocose", ()),
    "mocose-previous-fgsm": ("minilm-mocose", ("noise.adversarial.gradient=previous",)),
    "mocose-no-fgsm": ("minilm-mocose", ("noise.adversarial=null",)),
}

LABELLED_ROWS = 512
"""Of each task's table."""


def labelled_tasks(recipe: Recipe, corpus: Path) -> list[LabelledTask]:
    """Return the tasks of a recipe with tables of the corpus's first sentences."""
    tasks = []
    for name, part in recipe.tasks.items():
        rows = islice(read_rows(corpus, 1), LABELLED_ROWS * part.sentences)
        sentences = [text for _, (text,) in rows]
        classes = len(getattr(part, "classes", ()))
        size = len(sentences) // part.sentences
        numbers = np.arange(size, dtype=np.float64)
        targets = numbers % classes if classes else numbers / size
        table = LabelledRows(
            tuple(sentences[side :: part.sentences][:size] for side in range(part.sentences)), targets
        )
        tasks.append(LabelledTask(name, part, table, table, finding="", remark=None, sha256=""))
    return tasks


@dataclass
class Passes:
    """Padded tokens that went through encoders.

    Attributes:
        forward: of all passes.
        backward: of those that a gradient to all weights went back through.
        inputs: of those that it went back through to the word embeddings alone.
    """

    forward: int = 0
    backward: int = 0
    inputs: int = 0
    _open: int = field(default=0, repr=False)

    def watch(self, transformer: torch.nn.Module) -> None:
        """Count the passes of a Transformer from now on."""

        def count(_module, _arguments, named):
            rows, width = named["inputs_embeds"].shape[:2]
            self.forward += rows * width
            if torch.is_grad_enabled() and named["inputs_embeds"].requires_grad:
                self._open += rows * width

        transformer.register_forward_pre_hook(count, with_kwargs=True)

    def went_back(self, *, to_inputs: bool) -> None:
        """Take note that the passes since the last time were gone back through."""
        if to_inputs:
            self.inputs += self._open
        else:
            self.backward += self._open
        self._open = 0

    def work(self) -> int:
        """Return the passes in tokens that went forward."""
        return self.forward + 2 * self.backward + self.inputs


def steps_of(
    recipe: Recipe, base: Base, store: TokenStore, corpus: Path, steps: int, device: str
) -> tuple[list[float], Clock, Passes]:
    """Return the seconds of each step, the seconds by part, and the passes of all but the first two steps."""
    trainer = Trainer(recipe, store, base, World(), device, tasks=labelled_tasks(recipe, corpus))
    clock, passes, seconds = Clock(device), Passes(), []
    passes.watch(trainer.model.transformer)
    if trainer.target is not None:
        passes.watch(trainer.target.model.transformer)
        trainer.target.follow = clock.around("target", trainer.target.follow)  # type: ignore[method-assign]
    trainer.reader = clock.around("reading", trainer.reader)
    trainer.descent.step = clock.around("optimiser", trainer.descent.step)  # type: ignore[method-assign]
    learn = objectives.Adversary.learn

    def learning(own, loss):
        found = learn(own, loss)
        passes.went_back(to_inputs=True)
        return found

    with (
        patch.object(Forward, "__call__", clock.around("forward", Forward.__call__)),
        patch.object(objectives, "backward", clock.around("backward", torch.autograd.backward)),
        patch.object(networks, "backward", clock.around("backward", torch.autograd.backward)),
        patch.object(torch.autograd, "grad", clock.around("backward", torch.autograd.grad)),
        patch.object(objectives.Adversary, "learn", learning),
    ):
        for step in range(WARM + steps):
            if step == WARM:
                clock.seconds.clear()
                passes.forward = passes.backward = passes.inputs = 0
            start = clock.now()
            trainer.step(step)
            seconds.append(clock.now() - start)
            passes.went_back(to_inputs=False)
    return seconds[WARM:], clock, passes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="sample")
    parser.add_argument("--base", default=PACKAGED)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=32)
    parser.add_argument("--steps", type=int, default=12, help="timed, beside two that are not")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--methods", default=",".join(METHODS), help="with commas; simcse is always among them")
    options = parser.parse_args()

    changes = [
        f"base={options.base}",
        f"optimiser.batch={options.batch}",
        f"corpus.max_length={options.max_length}",
        f"optimiser.epochs={WARM + options.steps}",  # enough steps, however small the corpus
    ]
    wanted = list(dict.fromkeys(["simcse", *(name.strip() for name in options.methods.split(","))]))
    if unknown := [name for name in wanted if name not in METHODS]:
        parser.error(f"no method {', '.join(unknown)}: choose among {', '.join(METHODS)}")
    recipes = {name: read_recipe(METHODS[name][0], [*changes, *METHODS[name][1]]) for name in wanted}
    corpus = corpus_file(options.corpus)
    base, store = prepare(recipes["simcse"], corpus, options.device)
    seconds: dict[str, list[float]] = defaultdict(list)
    parts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    passes: dict[str, Passes] = {}
    for number in range(options.rounds):
        for name, recipe in recipes.items():
            found, clock, passes[name] = steps_of(recipe, base, store, corpus, options.steps, options.device)
            seconds[name] += found
            for part, value in clock.seconds.items():
                parts[name][part] += value
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr, flush=True)
    print(
        f"threads {torch.get_num_threads()}, {sys.version.split()[0]}, torch {torch.__version__}, {options.device}"
    )
    plain, work = statistics.median(seconds["simcse"]), passes["simcse"].work()
    for name, found in seconds.items():
        step, needed = statistics.median(found) / plain, passes[name].work() / work
        print(
            f"{name:20} {statistics.median(found):.3f} s a step ({min(found):.3f} to {max(found):.3f})"
            f"  {step:.2f} x simcse, passes {needed:.2f} x: ratio {step / needed:.2f}"
        )
        total = sum(found)
        outside = total - parts[name]["forward"] - parts[name]["backward"]
        shares = ", ".join(f"{part} {100 * value / total:.1f} %" for part, value in parts[name].items())
        print(f"{'':20} outside forward and backward {100 * outside / total:.1f} % ({shares})")


if __name__ == "__main__":
    main()
