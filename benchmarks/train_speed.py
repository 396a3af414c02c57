"""Training steps per second against a plain Transformers Trainer, in one run.

    python benchmarks/train_speed.py --corpus FILE [--steps 20] [--rounds 3] [--device cpu] [--precision fp32]

Both sides train the same base on the same rows in the same order, with the same batch, maximum length, losses and
optimiser; the Trainer pads each batch to its longest sentence, as a script would. They take turns, round by round,
and what is printed are medians over all steps but the first two of each turn. "Plain" is the same recipe with
16 sentences in each pass. The Trainer, which draws its dropout masks by torch, needs `accelerate` and Transformers
5.

Beside it the Trainer that groups sentences by length (`train_sampling_strategy="group_by_length"`). It trains on
other batches: all sentences of one are of like length, and so are the negatives, which makes another method of it.
Its steps differ in length, so it is compared by the seconds of a token.

On a machine that does other work too, set OMP_NUM_THREADS=1, take --computing, and mistrust the ratio.
"""

import argparse
import copy
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from stsbench.base.files import sha256_of
from stsbench.data.corpus import corpus_file, read_rows
from stsbench.training.base import Base, find_base, load_model
from stsbench.training.batches import BatchReader, TokenStore, make_schedule, open_store
from stsbench.training.distributed import World
from stsbench.training.model import pooled
from stsbench.training.recipe import Recipe, read_recipe
from stsbench.training.trainer import Trainer

RECIPES = {"simcse": "minilm-simcse", "esimcse": "minilm-esimcse"}
PLAIN = ["optimiser.chunk=16"]
EXTRA = {"repetition only": ["negatives.queue=null"], "queue only": ["views.key=identity"]}
WARM = 2


class Clock:
    """Adds up the seconds that calls take, by name."""

    computing = False
    """Whether seconds are those that the processor computed for this process, not those of the clock."""

    def __init__(self, device: str) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.cuda = device.startswith("cuda")

    def now(self) -> float:
        if self.cuda:
            torch.cuda.synchronize()
        return time.process_time() if self.computing else time.perf_counter()

    def around(self, name: str, call):
        def timed(*arguments, **named):
            start = self.now()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds[name] += self.now() - start

        return timed


def prepare(recipe: Recipe, corpus: Path, device: str) -> tuple[Base, TokenStore]:
    base = find_base(recipe, device)
    limit = recipe.corpus.max_length - base.tokenizer.special_tokens
    root = Path(tempfile.gettempdir()) / "stsbench-train-speed"
    meaning = {"corpus": sha256_of(corpus), "tokenizer": base.encoder.identity.tokenizer_sha256}
    store = open_store(root, meaning, read_rows(corpus, 1), base.tokenizer, limit=limit)
    return base, store


def ours(recipe: Recipe, base: Base, store: TokenStore, steps: int, device: str) -> tuple[Any, ...]:
    """Return seconds of each step, seconds by part, and real and padded tokens of the encoder in training."""
    # Any: its parts are exchanged for timed ones.
    trainer: Any = Trainer(recipe, store, base, World(), device)
    clock, forward = Clock(device), trainer.terms[0].forward
    trainer.terms = [clock.around("forward and backward", term) for term in trainer.terms]
    trainer.reader = clock.around("reading", trainer.reader)
    trainer.descent.step = clock.around("optimiser", trainer.descent.step)
    if trainer.queue is not None:
        trainer.queue.push = clock.around("momentum forward", trainer.queue.push)
    if trainer.target is not None:
        trainer.target.follow = clock.around("momentum update", trainer.target.follow)
    seconds, tokens = [], np.zeros(2, dtype=int)
    for step in range(steps):
        if step == WARM:
            clock.seconds.clear()
            tokens[:] = 0
        start = clock.now()
        batches = trainer.step(step).batches
        seconds.append(clock.now() - start)
        for batch in batches:
            padded = sum(chunk.ids.numel() for chunk in forward.chunks(batch.sequences))
            tokens += [sum(map(len, batch.sequences)), padded]
    # The queue takes the batch in at the end of the loss.
    clock.seconds["forward and backward"] -= clock.seconds["momentum forward"]
    return seconds[WARM:], clock.seconds, tokens


def by_length(lengths: Any, batch: int, steps: int, seed: int) -> list[Any]:
    """Return rows of some batches as the Trainer groups a corpus by length, in a random order.

    It sorts 50 batches at a time: of these as many as are wanted, evenly spaced.
    """
    from transformers.trainer_pt_utils import get_length_grouped_indices

    generator = torch.Generator().manual_seed(seed)
    rows = np.array(get_length_grouped_indices(lengths.tolist(), batch, generator=generator))
    # As many as it sorts at once; a smaller corpus has fewer.
    at_once = max(1, min(len(rows) // (4 * batch), 50))
    batches = [rows[start : start + batch] for start in range(0, at_once * batch, batch)]
    chosen = np.linspace(0, len(batches) - 1, steps).round().astype(int)
    return [batches[place] for place in np.random.default_rng(seed).permutation(chosen)]


def theirs(
    recipe: Recipe, base: Base, store: TokenStore, steps: int, device: str, *, grouped: bool = False
) -> tuple[Any, ...]:
    """Return seconds of each step of a Trainer, and the real and padded tokens of its batches.

    Its batches are ours, or those of the whole corpus grouped by length, evenly taken from the longest to the
    shortest.
    """
    from transformers import Trainer, TrainerCallback, TrainingArguments

    schedule = make_schedule(recipe, store)
    reader = BatchReader(store, base.tokenizer, recipe, base.longest)
    model, _ = load_model(base, recipe, device)
    queue_part: Any
    target: Any
    queue_part, target, temperature = recipe.negatives.queue, recipe.target, recipe.objective.temperature
    if grouped:
        order = by_length(store.lengths(), recipe.optimiser.batch, steps, recipe.seed)
    else:
        order = [schedule.batches(step)[0] for step in range(steps)]
    batches = [reader(places, str(step), "0") for step, places in enumerate(order)]
    rows = [
        {"input_ids": query, "key": key}
        for batch in batches
        for query, key in zip(batch.query, batch.key, strict=True)
    ]
    tokens: list[tuple[int, int]] = []

    def collate(items):
        sequences = [torch.from_numpy(item[side]) for side in ("input_ids", "key") for item in items]
        ids = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=base.tokenizer.pad_id)
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        mask = (torch.arange(ids.shape[1]) < lengths.unsqueeze(1)).long()
        tokens.append((int(lengths.sum()), ids.numel()))
        return {"input_ids": ids, "attention_mask": mask}

    def encode(network, ids, mask):
        return pooled(recipe.pooling, network(input_ids=ids, attention_mask=mask).last_hidden_state, mask)

    class Contrastive(Trainer):
        queue = torch.zeros((0, model.width), device=device)
        slow = copy.deepcopy(model.transformer).eval() if queue_part else None

        def compute_loss(self, network, inputs, return_outputs=False, **_):
            ids, mask = inputs["input_ids"], inputs["attention_mask"]
            query, key = encode(network, ids, mask).chunk(2)
            columns = torch.cat([key, self.queue])
            cosines = functional.normalize(query, dim=-1) @ functional.normalize(columns, dim=-1).T
            loss = functional.cross_entropy(cosines / temperature, torch.arange(len(query), device=ids.device))
            if self.slow is not None:
                with torch.no_grad():
                    half = len(ids) // 2
                    newest = encode(self.slow, ids[:half], mask[:half])
                self.queue = torch.cat([newest, self.queue])[: queue_part.size]
            return (loss, None) if return_outputs else loss

    class Steps(TrainerCallback):
        seconds: list[float]
        clock, start = Clock(device), 0.0

        def on_step_begin(self, *_, **__):
            self.start = self.clock.now()

        def on_step_end(self, *_, **__):
            if trainer.slow is not None:
                with torch.no_grad():
                    pairs = zip(trainer.slow.parameters(), trainer.model.parameters(), strict=True)
                    for mean, value in pairs:
                        mean.lerp_(value, 1 - target.decay)
            self.seconds.append(self.clock.now() - self.start)

    with tempfile.TemporaryDirectory() as folder:
        part = recipe.optimiser
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=part.batch,
            max_steps=steps,
            learning_rate=part.learning_rate,
            weight_decay=part.weight_decay,
            max_grad_norm=part.clip,
            lr_scheduler_type="linear",
            train_sampling_strategy="sequential",
            bf16=recipe.precision == "bf16",
            use_cpu=device == "cpu",
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            remove_unused_columns=False,
            disable_tqdm=True,
            seed=recipe.seed,
        )
        watch = Steps()
        watch.seconds = []
        trainer = Contrastive(
            model=model.transformer, args=arguments, train_dataset=rows, data_collator=collate, callbacks=[watch]
        )
        trainer.train()
    return watch.seconds[WARM:], np.sum(tokens[WARM:steps], axis=0)


@dataclass
class Side:
    """What was measured of one way to train.

    Attributes:
        seconds: of each step.
        tokens: real and padded, of all these steps.
        parts: seconds by part, of all these steps.
    """

    seconds: list[float] = field(default_factory=list)
    tokens: Any = 0
    parts: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, seconds: list[float], tokens: Any, parts: dict[str, float]) -> None:
        """Take in a turn."""
        self.seconds += seconds
        self.tokens = self.tokens + tokens
        for part, value in parts.items():
            self.parts[part] += value

    @property
    def step(self) -> float:
        """The seconds of a step, as median."""
        return statistics.median(self.seconds)

    @property
    def token(self) -> float:
        """The seconds of a real token, as mean."""
        return sum(self.seconds) / self.tokens[0]

    def described(self) -> str:
        """Return steps a second, seconds of a thousand tokens and padding in words."""
        return (
            f"{1 / self.step:.3f} steps/s ({min(self.seconds):.3f} to {max(self.seconds):.3f} s a step), "
            f"{1000 * self.token:.3f} s for 1,000 tokens, "
            f"{self.tokens[1] / self.tokens[0]:.3f} padded to a real one"
        )

    def shares(self) -> str:
        """Return what each part takes."""
        total = sum(self.seconds)
        inside = self.parts["forward and backward"] + self.parts["momentum forward"]
        shares = ", ".join(f"{part} {100 * value / total:.1f} %" for part, value in self.parts.items())
        return f"outside forward and backward {100 * (total - inside) / total:.1f} % ({shares})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="sample")
    parser.add_argument("--base", default="minilm")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=32)
    parser.add_argument("--chunk", type=int, help="sentences in one of our forward passes")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--recipes", default=",".join(RECIPES), help="with commas, of simcse and esimcse")
    parser.add_argument("--computing", action="store_true", help="the processor's seconds, not the clock's")
    options = parser.parse_args()

    Clock.computing = options.computing
    corpus = corpus_file(options.corpus)
    changes = [
        f"base={options.base}",
        f"optimiser.batch={options.batch}",
        f"corpus.max_length={options.max_length}",
        f"precision={options.precision}",
        f"optimiser.chunk={options.chunk or 'null'}",
        f"optimiser.epochs={options.steps}",  # enough steps, however small the corpus
    ]
    print(
        f"threads {torch.get_num_threads()}, {sys.version.split()[0]}, torch {torch.__version__}, "
        f"{options.device}, seconds {'of computing' if options.computing else 'by the clock'}"
    )
    wanted = options.recipes.split(",")
    recipes = {}
    for name in wanted:
        recipes[name] = read_recipe(RECIPES[name], changes)
        recipes[f"{name} plain"] = read_recipe(RECIPES[name], [*changes, *PLAIN])
    if "esimcse" in wanted:
        recipes |= {name: read_recipe(RECIPES["esimcse"], [*changes, *more]) for name, more in EXTRA.items()}
    base, store = prepare(recipes[wanted[0]], corpus, options.device)
    sides: dict[str, Side] = defaultdict(Side)
    for round_ in range(options.rounds):
        for name, recipe in recipes.items():
            seconds, parts, tokens = ours(recipe, base, store, options.steps, options.device)
            sides[name].add(seconds, tokens, parts)
            for kind in ("Trainer", "grouped") if name in RECIPES else ():
                plain = recipes[f"{name} plain"]
                seconds, tokens = theirs(
                    plain, base, store, options.steps, options.device, grouped=kind == "grouped"
                )
                sides[f"{name} {kind}"].add(seconds, tokens, {})
        print(f"round {round_ + 1} of {options.rounds} done", file=sys.stderr, flush=True)
    for name in recipes:
        side, method = sides[name], name.split()[0]
        line = f"{name:16} {side.described()}"
        if f"{method} Trainer" in sides:
            trainer, grouped = sides[f"{method} Trainer"], sides[f"{method} grouped"]
            line += (
                f"  Trainer {trainer.step / side.step:.2f} x, grouped by length {grouped.token / side.token:.2f} x"
            )
        if name != "simcse" and "simcse" in sides:
            line += f"  {side.step / sides['simcse'].step:.2f} x simcse"
        print(line)
        print(f"{'':16} {side.shares()}")
    for name in wanted:
        print(f"{name} Trainer: {sides[f'{name} Trainer'].described()}")
        print(f"{name} Trainer, grouped: {sides[f'{name} grouped'].described()}")
    print("grouped by length, a batch has other sentences, all of like length, and so other negatives")


if __name__ == "__main__":
    main()
