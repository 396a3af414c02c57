"""Training steps per second against a plain Transformers Trainer, in one run.

    python benchmarks/train_speed.py --corpus FILE [--steps 20] [--rounds 3] [--device cpu] [--precision fp32]

Both sides train the same base on the same rows in the same order, with the same batch, maximum length, losses and
optimiser; the Trainer pads each batch to its longest sentence, as a script would. They take turns, round by round,
and what is printed are medians over all steps but the first two of each turn. The Trainer needs `accelerate`.

On a machine that does other work too, set OMP_NUM_THREADS=1, and mistrust the ratio.
"""

import argparse
import copy
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from stsbench.base.files import sha256_of
from stsbench.data.corpus import corpus_file, read_rows
from stsbench.encoders.poolers import POOLERS
from stsbench.training.base import Base, find_base, load_model
from stsbench.training.batches import BatchReader, make_schedule
from stsbench.training.distributed import World
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import read_recipe
from stsbench.training.token_store import TokenStore, open_store
from stsbench.training.trainer import assemble

RECIPES = {"simcse": "minilm-simcse", "esimcse": "minilm-esimcse"}
EXTRA = {"repetition only": ["negatives.queue=null"], "queue only": ["views.key=identity"]}
WARM = 2


class Clock:
    """Adds up the seconds that calls take, by name."""

    def __init__(self, device: str) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.cuda = device.startswith("cuda")

    def now(self) -> float:
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

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
    trainer: Any = assemble(recipe, store, base, World(), device)
    clock, forward = Clock(device), trainer.terms[0].forward
    trainer.terms = [clock.around("forward and backward", term) for term in trainer.terms]
    trainer.reader = clock.around("reading", trainer.reader)
    trainer.descent.step = clock.around("optimiser", trainer.descent.step)
    trainer.negatives.push = clock.around("momentum forward", trainer.negatives.push)
    if trainer.target is not None:
        trainer.target.after_step = clock.around("momentum update", trainer.target.after_step)
    seconds, tokens = [], np.zeros(2, dtype=int)
    for step in range(steps):
        if step == WARM:
            clock.seconds.clear()
        start = clock.now()
        batches = trainer.step(step).batches
        seconds.append(clock.now() - start)
        for batch in batches:
            padded = sum(chunk.ids.numel() for chunk in forward.chunks(batch.sequences))
            tokens += [sum(map(len, batch.sequences)), padded]
    # The queue takes the batch in at the end of the loss.
    clock.seconds["forward and backward"] -= clock.seconds["momentum forward"]
    return seconds[WARM:], clock.seconds, tokens


def theirs(recipe: Recipe, base: Base, store: TokenStore, steps: int, device: str) -> tuple[Any, ...]:
    """Return seconds of each step of a Trainer, and the real and padded tokens of its batches."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    schedule = make_schedule(recipe, store)
    reader = BatchReader(store, base.tokenizer, recipe, base.longest)
    model, _ = load_model(base, recipe, device)
    queue_part: Any
    target: Any
    queue_part, target, temperature = recipe.negatives.queue, recipe.target, recipe.objective.temperature
    pool = POOLERS[recipe.pooling]
    batches = [reader(schedule.batches(step)[0], str(step), "0") for step in range(steps)]
    rows = [(q, k) for batch in batches for q, k in zip(batch.query, batch.key, strict=True)]
    tokens = np.zeros(2, dtype=int)

    def collate(items):
        sequences = [torch.from_numpy(side) for place in (0, 1) for side in (item[place] for item in items)]
        ids = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=base.tokenizer.pad_id)
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        mask = (torch.arange(ids.shape[1]) < lengths.unsqueeze(1)).long()
        tokens[:] += [int(lengths.sum()), ids.numel()]
        return {"input_ids": ids, "attention_mask": mask}

    def encode(network, ids, mask):
        return pool((network(input_ids=ids, attention_mask=mask).last_hidden_state,), mask)

    class Contrastive(Trainer):
        queue = torch.zeros((0, model.width), device=device)
        slow = copy.deepcopy(model.transformer).eval() if queue_part else None

        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

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
    return watch.seconds[WARM:], tokens


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
    options = parser.parse_args()

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
        f"threads {torch.get_num_threads()}, {sys.version.split()[0]}, torch {torch.__version__}, {options.device}"
    )
    recipes = {name: read_recipe(recipe, changes) for name, recipe in RECIPES.items()}
    recipes |= {name: read_recipe(RECIPES["esimcse"], [*changes, *more]) for name, more in EXTRA.items()}
    base, store = prepare(recipes["simcse"], corpus, options.device)
    mine: dict[str, list[float]] = defaultdict(list)
    plain: dict[str, list[float]] = defaultdict(list)
    parts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    real: dict[str, dict[str, Any]] = {}
    for round_ in range(options.rounds):
        for name, recipe in recipes.items():
            seconds, own_parts, tokens = ours(recipe, base, store, options.steps, options.device)
            mine[name] += seconds
            for part, value in own_parts.items():
                parts[name][part] += value
            real.setdefault(name, {})["ours"] = tokens
            if name in RECIPES:
                seconds, tokens = theirs(recipe, base, store, options.steps, options.device)
                plain[name] += seconds
                real[name]["plain"] = tokens
        print(f"round {round_ + 1} of {options.rounds} done", file=sys.stderr, flush=True)
    simcse = statistics.median(mine["simcse"])
    for name, seconds in mine.items():
        own = statistics.median(seconds)
        line = f"{name:16} {1 / own:7.3f} steps/s ({min(seconds):.3f} to {max(seconds):.3f} s a step)"
        if name in plain:
            other = statistics.median(plain[name])
            line += f"  Trainer {1 / other:7.3f} steps/s  ratio {other / own:.2f}"
        if name != "simcse":
            line += f"  {own / simcse:.2f} x simcse"
        print(line)
        total = sum(seconds)
        inside = parts[name]["forward and backward"] + parts[name]["momentum forward"]
        shares = ", ".join(f"{part} {100 * value / total:.1f} %" for part, value in parts[name].items())
        print(f"{'':16} outside forward and backward {100 * (total - inside) / total:.1f} % ({shares})")
        for side, (tokens, padded) in real[name].items():
            print(f"{'':16} {side}: {padded / tokens:.3f} padded tokens to a real one")


if __name__ == "__main__":
    main()
