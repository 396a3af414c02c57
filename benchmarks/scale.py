"""Time and peak memory of large inputs, and how both grow: a person's own pairs, a corpus, many records.

    python benchmarks/scale.py [--parts pairs,embed,find,retrieve,tokens,...] [--rows N] [--sizes 4]

Each part is run on a quarter, a half and the whole of its size (`--sizes` tells how many), each in a process of
its own, as the peak of memory is a process's. The sizes: 500,000 pairs for `pairs` (`run --data`), ten million
sentences for `embed` (into a file of vectors), `find` (the nearest sentences in that file), `retrieve` (in a
corpus) and `tokens` (what `train` reads its corpus into, on disk), a thousand records for `show` and `report`, the
hundred that `rank` takes; `--rows` sets another. Sentences are drawn from 5,000 invented words; vectors are those
of a callable that counts letters, of `embed` means of word vectors of 64 dimensions: this is about what stands
around an encoder. Prints seconds, the peak of memory, and the growth: both grow as the size to the power of it,
between the last two sizes (1 is linear).
Goal: no exponent above 1.15 but of `rank`, which compares pairs of models, and memory that does not grow where the
work is a stream (`embed`, `find`, `tokens`).
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAIRS, SENTENCES, RECORDS, RANKED = 500_000, 10_000_000, 1000, 100

WORDS_OF_A_SENTENCE = 10


def words_of(seed: int) -> "tuple[NDArray[np.str_], np.random.Generator]":
    """Return 5,000 invented words, and what goes on drawing."""
    import numpy as np

    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    return np.array(["".join(rng.choice(letters, 2 + number % 7)) for number in range(5000)]), rng


def sentences(count: int, seed: int = 0) -> Iterator[str]:
    """Yield invented sentences, a block at a time."""
    words, rng = words_of(seed)
    for start in range(0, count, 10_000):
        block = words[rng.integers(len(words), size=(min(10_000, count - start), WORDS_OF_A_SENTENCE))]
        yield from (f"{' '.join(row)} {start + place}" for place, row in enumerate(block.tolist()))


def counted(texts: list[str]) -> list[list[float]]:
    """An encoder of eight dimensions."""
    return [[len(text), *(text.count(letter) + 0.5 for letter in "aeiosnt")] for text in texts]


def write_lines(path: Path, count: int) -> Path:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{sentence}\n" for sentence in sentences(count))
    return path


def pairs(rows: int, folder: Path) -> Callable[[], object]:
    import stsbench as sb

    file = folder / "pairs.tsv"
    with file.open("w", encoding="utf-8") as stream:
        both = zip(sentences(rows), sentences(rows, seed=1), strict=True)
        stream.writelines(f"{one}\t{other}\t{number % 51 / 10}\n" for number, (one, other) in enumerate(both))
    return lambda: sb.evaluate(counted, data=file, out=folder / "run")


def retrieve(rows: int, folder: Path) -> Callable[[], object]:
    import stsbench as sb

    corpus, queries = write_lines(folder / "corpus.txt", rows), list(sentences(10, seed=2))
    return lambda: sb.retrieve(counted, query=queries, corpus=corpus)


def _embedding(rows: int, folder: Path) -> Callable[[], Path]:
    from stsbench.encoders.embedded import embed_file

    words, rng = words_of(0)
    with (folder / "words.txt").open("w", encoding="utf-8") as stream:
        for word in dict.fromkeys(words.tolist()):
            print(word, *(f"{value:.4f}" for value in rng.normal(size=64)), file=stream)
    corpus = write_lines(folder / "corpus.txt", rows)
    return lambda: embed_file(corpus, folder / "words.txt", out=folder / "corpus.npy").path


def embed(rows: int, folder: Path) -> Callable[[], object]:
    return _embedding(rows, folder)


def find(rows: int, folder: Path) -> Callable[[], object]:
    import stsbench as sb

    vectors, queries = _embedding(rows, folder)(), list(sentences(10))
    return lambda: sb.retrieve(sb.load(folder / "words.txt"), query=queries, corpus=vectors)


def tokens(rows: int, folder: Path) -> Callable[[], object]:
    from stsbench.data.corpus import read_rows
    from stsbench.encoders.checkpoint import find_checkpoint
    from stsbench.encoders.tokenizer import Tokenizer
    from stsbench.training.batches import open_store

    corpus = write_lines(folder / "corpus.txt", rows)
    tokenizer = Tokenizer(find_checkpoint("minilm"), trust_remote_code=False)
    return lambda: open_store(folder / "stores", {"corpus": rows}, read_rows(corpus, 1), tokenizer, limit=30)


def _records(rows: int, folder: Path) -> list[Path]:
    """Write copies of one record under other names."""
    import stsbench as sb

    record = sb.evaluate(counted, "sample", intervals=sb.Intervals(None), out=folder / "one")
    places = []
    for number in range(rows):
        model = record.model.model_copy(update={"name": f"model {number}"})
        place = folder / "runs" / str(number)
        place.mkdir(parents=True)
        text = json.dumps(record.model_copy(update={"model": model}).to_dict())
        (place / "run.json").write_text(text, encoding="utf-8")
        os.link(folder / "one" / "items.parquet", place / "items.parquet")
        places.append(place)
    return places


def show(rows: int, folder: Path) -> Callable[[], object]:
    import stsbench as sb

    places = _records(rows, folder)
    return lambda: str(sb.show(places).table())


def rank(rows: int, folder: Path) -> Callable[[], object]:
    import stsbench as sb

    places = _records(rows, folder)
    return lambda: str(sb.rank(places).table())


def report(rows: int, folder: Path) -> Callable[[], object]:
    import stsbench as sb

    places = _records(rows, folder)
    return lambda: sb.report(places, folder / "report", analyse=False)


PARTS: dict[str, tuple[Callable[[int, Path], Callable[[], object]], int]] = {
    "pairs": (pairs, PAIRS),
    "embed": (embed, SENTENCES),
    "find": (find, SENTENCES),
    "retrieve": (retrieve, SENTENCES),
    "tokens": (tokens, SENTENCES),
    "show": (show, RECORDS),
    "rank": (rank, RANKED),
    "report": (report, RECORDS),
}


def measured(part: str, rows: int) -> None:
    """Make a part's input and run it, in this process; print what it took as JSON."""
    with tempfile.TemporaryDirectory() as made:
        work = PARTS[part][0](rows, Path(made))
        before, start = _peak(), time.perf_counter()
        work()
        print(json.dumps([time.perf_counter() - start, _peak(), before]))


def _peak() -> float:
    """Return the megabytes that this process has held at most."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def exponent(sizes: tuple[int, int], values: tuple[float, float], noise: float) -> str:
    """Return the power of the size that a value grows by; of values below the noise there is none."""
    if min(values) < noise:
        return "none to speak of"
    return f"{math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0]):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rows", type=int, help="the largest size, instead of each part's own")
    parser.add_argument("--sizes", type=int, default=3, help="how many sizes, each half of the next")
    parser.add_argument("--one", nargs=2, metavar=("PART", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measured(options.one[0], int(options.one[1]))
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for part in options.parts.split(","):
        largest = options.rows or PARTS[part][1]
        sizes = sorted({max(1, largest >> halving) for halving in range(options.sizes)})
        results = []
        for rows in sizes:
            command = [sys.executable, __file__, "--one", part, str(rows)]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, peak, before = json.loads(ended.stdout.strip().rpartition("\n")[2])
            results.append((seconds, peak - before))
            print(
                f"{part:9} {rows:12,} rows {seconds:8.2f} s  "
                f"peak {peak:8.0f} MB, {peak - before:7.0f} of them for it",
                flush=True,
            )
        if len(sizes) > 1:
            seconds, megabytes = zip(*results[-2:], strict=True)
            growth = exponent((sizes[-2], sizes[-1]), seconds, 0.01)
            memory = exponent((sizes[-2], sizes[-1]), megabytes, 1.0)
            print(f"{part:9} growth: time {growth}, memory {memory} (1 is linear)", flush=True)


if __name__ == "__main__":
    main()
