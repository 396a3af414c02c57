"""A model's score computed as other library versions do: the table in `library-generations.md`.

STSBENCH_DATA=data/senteval python docs/library_generations.py [MODEL]
"""

import sys
from collections.abc import Iterator

import numpy as np
import torch

import stsbench as sb
from stsbench.data.benchmarks import load_sample, load_sts
from stsbench.data.reading import DataNotFoundError
from stsbench.data.tables import StsData
from stsbench.encoders.plan import embed
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import PRECISIONS
from stsbench.statistics.correlations import spearman
from stsbench.statistics.neighbours import pair_similarities


def scores(encoder: TransformerEncoder, data: StsData) -> Iterator[tuple[str, float]]:
    """Yield the name of each way of computing, and the task's Spearman correlation x 100."""
    gold, texts = np.asarray(data.pairs["gold"]), [*data.pairs["sentence1"], *data.pairs["sentence2"]]
    half = len(texts) // 2

    def made(**use: str) -> tuple[np.ndarray, np.ndarray]:
        embedded = embed(encoder.with_use(**use), texts, normalize=False)
        return embedded.vectors[encoder.use.pooling], embedded.rows

    def of(vectors: np.ndarray, rows: np.ndarray) -> float:
        similarities = pair_similarities(vectors, rows[:half], rows[half:], ["cosine"])["cosine"]
        return 100 * spearman(gold, similarities)

    yield "fp32, `sdpa`, as stsbench does", of(*made())
    yield "fp32, `eager`", of(*made(attention="eager"))
    for name in ("bf16", "fp16"):
        vectors, rows = made(precision=name)
        yield f"{name}, `sdpa`", of(vectors, rows)
        yield f"{name}, `eager`", of(*made(precision=name, attention="eager"))
        unit = torch.from_numpy(vectors[np.unique(rows)]).to(getattr(torch, PRECISIONS[name]))
        unit = torch.nn.functional.normalize(unit, dim=1)[np.unique(rows, return_inverse=True)[1]]
        similarities = (unit[:half] * unit[half:]).sum(dim=-1).double().numpy()
        yield f"{name} up to the similarity", 100 * spearman(gold, similarities)


def table(encoder: TransformerEncoder, data: StsData) -> list[str]:
    """Return a row for each way of computing, in Markdown; differences are from the first."""
    lines = [f"| computed in | {data.task} | difference |", "| --- | ---: | ---: |"]
    first = None
    for what, score in scores(encoder, data):
        lines.append(f"| {what} | {score:.4f} | {'' if first is None else f'{score - first:+.4f}'} |")
        first = score if first is None else first
    return lines


if __name__ == "__main__":
    try:
        pairs = load_sts("STS-B", "test")
    except DataNotFoundError:
        pairs = load_sample()
    loaded = sb.load(sys.argv[1] if len(sys.argv) > 1 else "minilm", device="cpu")
    assert isinstance(loaded, TransformerEncoder), "of others there is one way of computing"
    print("\n".join(table(loaded, pairs)))
