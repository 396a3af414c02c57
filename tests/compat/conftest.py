"""What the tests of SentEval's interface share: a small folder of data in its layout."""

import numpy as np
import pytest

# A script as others have them: it is run, not imported.
collect_ignore = ["evaluation_script.py"]

WORDS = ["owl", "bus", "rain", "kettle", "river", "lamp", "stone", "leaf"]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """Return a small folder in SentEval's layout, of invented sentences."""
    rng = np.random.default_rng(0)

    def sentence(first):
        return " ".join([first, *rng.choice(WORDS[2:], rng.integers(1, 6))])

    data = tmp_path / "senteval"
    for label, name in (("owl", "custrev.pos"), ("bus", "custrev.neg")):
        write(data / "downstream/CR" / name, [sentence(label) for _ in range(60)])
    for name, lines in (("train_5500.label", 120), ("TREC_10.label", 36)):
        kinds = ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"]
        rows = [f"{kinds[row % 6]}:x {sentence(WORDS[row % 6])}" for row in range(lines)]
        write(data / "downstream/TREC" / name, rows)
    for split in ("train", "test"):
        rows = [f"{row % 2}\t1\t2\t{sentence('owl')}\t{sentence('bus')}" for row in range(60)]
        write(data / f"downstream/MRPC/msr_paraphrase_{split}.txt", ["Quality\ta\tb\tc\td", *rows])
    for split in ("train", "dev", "test"):
        rows = [f"a\tb\tc\td\t{rng.uniform(0, 5):.2f}\t{sentence('owl')}\t{sentence('bus')}" for _ in range(80)]
        write(data / f"downstream/STS/STSBenchmark/sts-{split}.csv", rows)
    for subset, count in (("FNWN", 30), ("headlines", 30), ("OnWN", 60)):
        sts = data / "downstream/STS/STS13-en-test"
        write(sts / f"STS.input.{subset}.txt", [f"{sentence('owl')}\t{sentence('bus')}" for _ in range(count)])
        golds = [f"{rng.uniform(0, 5):.1f}" if row % 3 else "" for row in range(count)]
        write(sts / f"STS.gs.{subset}.txt", golds)
    sizes = {"tr": 40, "va": 40, "te": 30}
    rows = [f"{split}\t{row % 2}\t{sentence(WORDS[row % 2])}" for split in sizes for row in range(sizes[split])]
    write(data / "probing/bigram_shift.txt", rows)
    return data
