"""Training at BERT-base size on a GPU: sentences a second, TFLOP/s against the card's own rate, projected time.

    python benchmarks/train_gpu.py --corpus FILE [--recipe esimcse-bert-base] [--steps 200] [--compile]

The weights are random, as only their size counts, with the tokenizer of the packaged MiniLM (BERT's vocabulary).
Data is read and batches are made as in a real training. FLOPs are counted for real tokens: 6 for each weight
outside the embedding tables (2 forward, 4 backward; 2 for the momentum encoder), and 4 for each token attended to,
layer and hidden unit, likewise times three. The card's rate is measured on bf16 products of 8192 x 8192 matrices.

The projection is for one million sentences in batches of 64, with 125 scores of 3,000 sentences each; the authors'
log says 4,555 s on an RTX 3090.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from stsbench.base.files import sha256_of
from stsbench.data.corpus import corpus_file, read_rows
from stsbench.encoders.checkpoint import find_checkpoint
from stsbench.encoders.plan import embed
from stsbench.training.base import find_base
from stsbench.training.batches import Batch
from stsbench.training.distributed import World
from stsbench.training.recipe_files import read_recipe
from stsbench.training.selection import LiveEncoder
from stsbench.training.token_store import open_store
from stsbench.training.trainer import assemble

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--recipe", default="esimcse-bert-base")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda", help="the CPU only shows that it runs")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--matrix", type=int, default=8192, help="size of the products that tell the card's rate")
    parser.add_argument("--warm", type=int, default=20, help="steps before the clock starts")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        BertModel(BertConfig(num_hidden_layers=options.layers)).save_pretrained(folder)
        AutoTokenizer.from_pretrained(find_checkpoint("minilm").folder).save_pretrained(folder)
        changes = [
            f"base={folder}",
            f"precision={options.precision}",
            f"compile={str(options.compile).lower()}",
            "optimiser.epochs=1000",
        ]
        recipe, corpus = read_recipe(options.recipe, changes), corpus_file(options.corpus)
        base = find_base(recipe, options.device)
        limit = recipe.corpus.max_length - base.tokenizer.special_tokens
        rows = read_rows(corpus, 1)
        store = open_store(Path(folder), {"corpus": sha256_of(corpus)}, rows, base.tokenizer, limit=limit)
        trainer = assemble(recipe, store, base, World(), options.device)
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

    rate, achieved = card_rate(options.device, options.matrix), done / seconds / 1e12
    steps = -(-SENTENCES // recipe.optimiser.batch)
    projected = steps * seconds / options.steps + SCORES * dev
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    print(f"{name}, torch {torch.__version__}, {options.recipe}, {options.precision}")
    per_second = f"{tokens / seconds:,.0f} tokens/s, {options.steps / seconds:.1f} steps/s"
    print(f"{sentences / seconds:,.0f} sentences/s, {per_second}")
    print(f"{achieved:.1f} TFLOP/s, {100 * achieved / rate:.1f} % of {rate:.0f} TFLOP/s measured in bf16 products")
    print(f"one dev encoding of {len(texts)} sentences {dev:.2f} s; projected {projected:,.0f} s in all")


if __name__ == "__main__":
    main()
