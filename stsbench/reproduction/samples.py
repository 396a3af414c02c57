"""Tables of the sample for labelled tasks, at the scale `demo`."""

from pathlib import Path

from stsbench.base.files import atomic_folder, cache_dir
from stsbench.data.benchmarks import load_labelled, load_sts


def labelled_path() -> Path:
    """Returns the folder of the sample's tables for the three labelled tasks, in the cache."""
    return cache_dir() / "stand-ins" / "labelled"


def make_labelled() -> None:
    """Writes the sample as tables of the three labelled tasks, laid out like the course's files, if missing."""
    if labelled_path().is_dir():
        return
    with atomic_folder(labelled_path()) as folder:
        _write_tables(folder)


def _write_tables(folder: Path) -> None:
    sentiment = load_labelled("sample-sentiment", text="sample").items
    paraphrases = load_labelled("sample-paraphrases", text="sample").items
    pairs = load_sts("sample", text="sample").pairs
    tables = {
        "ids-sst": (["sentence", "sentiment"], zip(sentiment["sentence1"], sentiment["label"], strict=True)),
        "quora": (
            ["sentence1", "sentence2", "is_duplicate"],
            zip(paraphrases["sentence1"], paraphrases["sentence2"], paraphrases["label"], strict=True),
        ),
        "sts": (
            ["sentence1", "sentence2", "similarity"],
            zip(pairs["sentence1"], pairs["sentence2"], pairs["gold"], strict=True),
        ),
    }
    for name, (columns, cells) in tables.items():
        rows = list(cells)
        # Every fourth row is for scoring; the course has one file of questions.
        whole = {"dev": rows} if name == "quora" else {"train": rows, "dev": rows[::4]}
        if name != "quora":
            whole["train"] = [row for place, row in enumerate(rows) if place % 4]
        for part, of_part in whole.items():
            lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in of_part)]
            (folder / f"{name}-{part}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
