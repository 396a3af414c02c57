"""Make `stsbench/analysis/references.csv`, the answers of reference models that `stsbench explain` compares with.

    STSBENCH_DATA=path/to/senteval python reports/make_references.py wordllama-l2-supercat-256

Each model answers the question of each analysis on the seven STS tasks (or STS-B) and on the sample. The arguments
are folders of further models. The others need no download: all-MiniLM-L6-v2, the mean of its input word vectors,
and two baselines without training, counts of words and of letter trigrams.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import stsbench as sb
from stsbench.analysis import analyses
from stsbench.analysis.explain import Explanation

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "docs"), str(ROOT / "reports")]

import far_encoders  # noqa: E402
from make_examples import write_word_vectors  # noqa: E402

DATA: tuple[dict[str, Any], ...] = ({}, {"tasks": ["sample"], "task": "sample"})
"""Parameters of analyses: by default the seven STS tasks or STS-B; the sample."""


def answers(name: str, model: Any) -> Iterator[dict[str, Any]]:
    """Yields the answers of a model on each data."""
    seen = set()
    for data in DATA:
        for analysis, kind in analyses().items():
            part = kind(**{key: value for key, value in data.items() if key in kind.parameters}).run(model)
            label = part.frame["model"].iloc[0]
            (row,) = Explanation({analysis: part}, subjects={label: model}).answers.to_dict("records")
            if (analysis, row["tasks"]) not in seen:
                seen.add((analysis, row["tasks"]))
                print(name, analysis, row["tasks"], row["value"], file=sys.stderr, flush=True)
                yield {"analysis": analysis, "tasks": row["tasks"], "model": name, "value": row["value"]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words.bin"
        write_word_vectors(words)
        models = {Path(path).name: sb.load(path) for path in sys.argv[1:]} | {
            "all-MiniLM-L6-v2": sb.load("minilm"),
            "word vectors of all-MiniLM-L6-v2": sb.load(words),
            "bag of words": far_encoders.words,
            "letter trigrams": far_encoders.trigrams,
        }
        rows = pd.DataFrame(row for name, model in models.items() for row in answers(name, model))
    rows = rows.sort_values(["analysis", "tasks"], kind="stable")
    rows.to_csv(ROOT / "stsbench" / "analysis" / "references.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
