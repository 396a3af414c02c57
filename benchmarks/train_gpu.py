"""Training at BERT-base size on a GPU: sentences a second, TFLOP/s against the card's own rate, projected time.

    python benchmarks/train_gpu.py --corpus FILE [--recipe esimcse-bert-base] [--steps 100]

Each recipe is trained in three ways in turns: its passes recorded as CUDA graphs (as a training is by default),
the same without the kernels that give the same bits each time, and plain. The weights are random, as only their
size counts, with the tokenizer of the packaged MiniLM (BERT's vocabulary). Data is read and batches are made as
in a real training. FLOPs are counted for real tokens: 6 for each weight outside the embedding tables (2 forward,
4 backward; 2 for the momentum encoder), and 4 for each token attended to, layer and hidden unit, likewise times
three. The card's rate is measured on bf16 products of 8192 x 8192 matrices.

The projection is for one million sentences in batches of 64, with 125 scores of 3,000 sentences each; the authors'
log says 4,555 s on an RTX 3090.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from stsbench.base.files import sha256_of
from stsbench.data.corpus import corpus_file, read_rows
from stsbench.encoders.checkpoint import find_checkpoint
from stsbench.encoders.plan import embed
from stsbench.training.base import find_base
from stsbench.training.batches import Batch, open_store
from stsbench.training.distributed import World, deterministic
from stsbench.training.log import LiveEncoder
from stsbench.training.recipe import Recipe, read_recipe
from stsbench.training.trainer import Trainer

SENTENCES, SCORES, DEV_SENTENCES = 1_000_000, 125, 3000


def wait_for(device: str) -> None:
    """Wait until a GPU has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def card_rate(device: str, size: int) -> float:
    """Return TFLOP/s of large bf16 products."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(5):
        a @ b
    wait_for(device)
    start = time.perf_counter()
    for _ in range(50):
        a @ b
    wait_for(device)
    return 50 * 2.0 * size**3 / (time.perf_counter() - start) / 1e12


def flops(config: BertConfig, lengths: list[int]) -> float:
    """Return the FLOPs of one forward pass over sequences of these lengths."""
    d, inner = config.hidden_size, config.intermediate_size
    weights = config.num_hidden_layers * (4 * d * d + 2 * d * inner)
    attended = sum(length * length for length in lengths)
    return 2 * weights * sum(lengths) + 4 * config.num_hidden_layers * d * attended


class Speed(NamedTuple):
    """What was measured of one way to train.

    Attributes:
        steps: a second.
        sentences: a second.
        tokens: a second.
        flops: a second.
        dev: seconds of one score on the dev set, encoding alone.
        memory: bytes on the device, at most.
    """

    steps: float
    sentences: float
    tokens: float
    flops: float
    dev: float
    memory: int


def measure(recipe: Recipe, options: argparse.Namespace, folder: Path) -> Speed:
    """Train by a recipe for some steps."""
    corpus, base = corpus_file(options.corpus), find_base(recipe, options.device)
    limit = recipe.corpus.max_length - base.tokenizer.special_tokens
    store = open_store(folder, {"corpus": sha256_of(corpus)}, read_rows(corpus, 1), base.tokenizer, limit=limit)
    if options.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    with deterministic(options.device, recipe.deterministic):
        trainer = Trainer(recipe, store, base, World(), options.device)
        config = trainer.model.transformer.config
        done, sentences, tokens, start = 0.0, 0, 0, 0.0
        for step in range(options.warm + options.steps):
            if step == options.warm:
                wait_for(options.device)
                done, sentences, tokens, start = 0.0, 0, 0, time.perf_counter()
            batches = [batch for batch in trainer.step(step).batches if isinstance(batch, Batch)]
            for batch in batches:
                lengths = [len(sequence) for sequence in batch.sequences]
                done += 3 * flops(config, lengths)
                if recipe.negatives.queue is not None:
                    done += flops(config, [len(sequence) for sequence in batch.query])
                sentences += len(batch.query)
                tokens += sum(lengths)
        wait_for(options.device)
        seconds = time.perf_counter() - start

        texts = [text for _, (text,) in read_rows(corpus, 1)][:DEV_SENTENCES]
        encoder = LiveEncoder(base.encoder, trainer.evaluating, trainer.model)
        embed(encoder, texts, use_cache=False)
        start = time.perf_counter()
        embed(encoder, texts, use_cache=False)
        dev = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated() if options.device.startswith("cuda") else 0
    return Speed(options.steps / seconds, sentences / seconds, tokens / seconds, done / seconds, dev, memory)


WAYS = {
    "recorded": (),
    "recorded, not deterministic": ("deterministic=false",),
    "plain": ("cuda_graphs=false",),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--recipe", default="simcse-bert-base,esimcse-bert-base", help="recipes, with commas")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cuda", help="the CPU only shows that it runs")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768, help="a multiple of 12, the attention's heads")
    parser.add_argument("--matrix", type=int, default=8192, help="size of the products that tell the card's rate")
    parser.add_argument("--warm", type=int, default=40, help="steps before the clock starts")
    parser.add_argument("--tokenizer", help="a checkpoint's folder, where MiniLM is not installed")
    options = parser.parse_args()

    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    rate = card_rate(options.device, options.matrix)
    print(f"{name}, torch {torch.__version__}, {options.precision}, {rate:.0f} TFLOP/s in bf16 products")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shape = {"hidden_size": options.width, "intermediate_size": 4 * options.width}
        BertModel(BertConfig(num_hidden_layers=options.layers, **shape)).save_pretrained(folder / "base")
        tokenizer = options.tokenizer or find_checkpoint("minilm").folder
        AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder / "base")
        changes = [f"base={folder / 'base'}", f"precision={options.precision}", "optimiser.epochs=1000"]
        for known in options.recipe.split(","):
            found = {}
            for way, further in WAYS.items():
                recipe = read_recipe(known, [*changes, *further])
                found[way] = speed = measure(recipe, options, folder / "tokens")
                steps = -(-SENTENCES // recipe.optimiser.batch)
                projected = steps / speed.steps + SCORES * speed.dev
                ratio = speed.steps / found["recorded"].steps
                print(
                    f"{known:20} {way:28} {speed.steps:6.1f} steps/s ({ratio:4.2f})  "
                    f"{speed.sentences:7,.0f} sentences/s  {speed.tokens:9,.0f} tokens/s  "
                    f"{speed.flops / 1e12:5.1f} TFLOP/s ({100 * speed.flops / 1e12 / rate:.0f} %)  "
                    f"{speed.memory / 1e9:4.1f} GB  a dev score {speed.dev:.2f} s  projected {projected:,.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
