"""The code of the page on trainings in other libraries runs, on small models."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "in-training.md"


def _blocks() -> list[str]:
    if not PAGE.is_file():
        pytest.skip("needs docs/")
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def _small(code: str) -> str:
    """Return a block that takes four steps and measures after every second, on the data that is here."""
    smaller = code.replace('"out"', '"out", max_steps=4, use_cpu=True, disable_tqdm=True')
    return smaller.replace("eval_steps=100", "eval_steps=2").replace("every=100", "every=2")


def test_the_code_of_the_page_is_short_and_runs(
    sentence_model: Callable[[], Any],
    tiny_bert: Path,
    rows: Any,
    benchmark_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("accelerate")
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    of_library, of_transformers = _blocks()
    assert all(len(code.strip().splitlines()) <= 12 for code in (of_library, of_transformers))

    model = sentence_model()
    names: dict[str, Any] = {"model": model, "rows": rows, "loss": CosineSimilarityLoss(model)}
    exec(_small(of_library), names)
    assert [line["step"] for line in names["evaluator"].dev.history] == [2, 4]
    assert "sts-b-dev_spearman_cosine" in capsys.readouterr().out

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert, model_max_length=64)
    tokens = rows.map(lambda row: tokenizer(row["sentence1"], truncation=True) | {"label": row["score"]})
    names = {
        "model": AutoModelForSequenceClassification.from_pretrained(tiny_bert, num_labels=1),
        "rows": tokens.select_columns(["input_ids", "attention_mask", "label"]),
        "tokenizer": tokenizer,
    }
    exec(_small(of_transformers), names)
    logged = [line for line in names["trainer"].state.log_history if "eval_sts-b-dev_spearman_cosine" in line]
    assert [line["step"] for line in logged] == [2, 4]
