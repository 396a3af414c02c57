"""Encoding on a GPU in half precision against bare forward passes.

    python benchmarks/encode_gpu.py --sentences FILE [FILE ...] [--precision bf16]

A model of BERT-base's size with random weights, as only its size counts, with the tokenizer of the packaged
MiniLM. Each distinct sentence of the files is encoded as a run does; the bare passes are of the same batches on
tensors that lie on the device, masks included. Seconds are of encoding alone, without tokenising.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

import stsbench as sb
from stsbench.encoders.checkpoint import find_checkpoint
from stsbench.encoders.plan import embed
from stsbench.encoders.transformer import TransformerEncoder


def wait_for(device: str) -> None:
    """Wait until a GPU has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def bare(encoder: TransformerEncoder, texts: list[str], device: str) -> float:
    """Return the seconds of forward passes alone, padded and masked."""
    sequences = sorted(set(encoder.tokenize(texts).sequences), key=len, reverse=True)
    batches, start = [], 0
    while start < len(sequences):
        batch = sequences[start : start + max(1, encoder.token_budget // len(sequences[start]))]
        width = len(batch[0])
        ids = torch.tensor([[*sequence, *[0] * (width - len(sequence))] for sequence in batch]).to(device)
        batches.append((ids, (ids != 0).long()))
        start += len(batch)
    with torch.inference_mode():
        for _ in range(2):
            wait_for(device)
            begun = time.perf_counter()
            for ids, mask in batches:
                encoder.network.model(input_ids=ids, attention_mask=mask)
            wait_for(device)
            seconds = time.perf_counter() - begun
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", nargs="+", required=True, help="text files, a sentence a line")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--device", default="cuda", help="the CPU only shows that it runs")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768, help="a multiple of 12, the attention's heads")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tokenizer", help="a checkpoint's folder, where MiniLM is not installed")
    options = parser.parse_args()

    texts = list(
        dict.fromkeys(
            line for file in options.sentences for line in Path(file).read_text("utf-8").splitlines() if line
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        shape = {"hidden_size": options.width, "intermediate_size": 4 * options.width}
        BertModel(BertConfig(num_hidden_layers=options.layers, **shape)).save_pretrained(folder)
        tokenizer = options.tokenizer or find_checkpoint("minilm").folder
        AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)
        encoder = sb.load(folder, pooling="avg", device=options.device, precision=options.precision)
        assert isinstance(encoder, TransformerEncoder)
        embed(encoder, texts, use_cache=False)
        costs = [embed(encoder, texts, use_cache=False).cost for _ in range(options.repeat)]
        passes = bare(encoder, texts, options.device)
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    cost, seconds = costs[0], [cost.seconds["encode"] for cost in costs]
    middle = median(seconds)
    print(
        f"{name}, torch {torch.__version__}, {options.precision}: {len(texts):,} sentences, {cost.tokens:,} tokens"
    )
    print(f"  padded to {cost.padded_tokens:,}; tokenising {cost.seconds['tokenize']:.2f} s")
    spread = f"({min(seconds):.2f} to {max(seconds):.2f})"
    print(f"  encoding  {middle:6.2f} s {spread}  {cost.tokens / middle:11,.0f} tokens/s")
    print(f"  bare      {passes:6.2f} s {cost.tokens / passes:26,.0f} tokens/s")
    print(f"  encoding / bare {middle / passes:.2f}")


if __name__ == "__main__":
    main()
