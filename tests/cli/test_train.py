"""`stsbench train`: mistakes are one sentence, and nothing is left behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Stsbench = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a recipe, or a folder with --resume"),
        (("demo", "--resume", "runs/demo"), "name a recipe, or a folder with --resume"),
        (("dmeo",), "unknown recipe 'dmeo': did you mean demo"),
        (
            ("demo", "--set", "negatives.queue=null", "--set", "optimiser.batch=1000"),
            "fewer than one batch of 1000",
        ),
        (("minilm-simcse", "--corpus", "wiki.txt"), "there is no corpus wiki.txt"),
        (("--resume", "runs/none"), "holds no training"),
        (("demo", "--corpus", "here.pdf"), "unknown ending|there is no corpus"),
        (("demo", "--device", "tpu"), "unknown device 'tpu'"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: tuple[str, ...], message: str, stsbench: Stsbench) -> None:
    stsbench("train", *arguments).demand_one_sentence(message)
    assert not list(Path.cwd().iterdir())


def test_recipes_are_listed_and_printed(stsbench: Stsbench) -> None:
    listed = stsbench("train", "--list")
    assert listed.code == 0
    assert "esimcse-roberta-large-released" in listed.out
    printed = stsbench("train", "esimcse-bert-base", "--print", "--set", "optimiser.batch=32")
    assert "batch: 32" in printed.out
    assert "rate: 0.32" in printed.out
