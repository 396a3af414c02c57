"""Tables of the sample for the three labelled tasks."""

from stsbench.data.benchmarks import load_labelled, load_sts


def write_labelled(folder):
    """Writes the sample as tables of the three labelled tasks, laid out like the course's files."""
    folder.mkdir(exist_ok=True)
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
