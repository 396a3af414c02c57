"""What a corpus holds of the scored sentences: counted again in a few lines, and told in record, card and log."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stsbench.data.benchmarks import load_sts
from stsbench.training.labelled import SCORED, corpus_sentence


def letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]", text.casefold()))


def test_each_number_is_what_a_few_lines_count(benchmark_folder: Path) -> None:
    names, texts = [name for name in SCORED if not name.startswith("SICK")], []
    for name in names:
        task, _, split = name.partition(":")
        table = load_sts(task, split, data_dirs=[benchmark_folder]).pairs
        texts.append([*table["sentence1"], *table["sentence2"]])
    corpus = ["rain", f" {texts[0][0]} ", *(text.upper() + " !" for text in texts[2][:5]), *texts[3][:7]]
    said, counts = corpus_sentence(iter(corpus), [benchmark_folder]), {}
    for name, of_set in zip(names, texts, strict=True):
        distinct = {letters(text) for text in of_set}
        met = len(distinct & {letters(text) for text in corpus})
        released = len(set(of_set) & {text.strip() for text in corpus})
        counts[name] = met, released
        told = f"{met} of the {len(distinct):,} of {name} ({released} as released)"
        assert (told in said) if met else (name in said.partition("it holds none of ")[2])
    assert counts[names[2]][0] > counts[names[2]][1]
    assert {name for name in SCORED if name in said} == set(SCORED)


def test_where_no_task_is_here_nothing_is_said_and_the_corpus_is_not_read() -> None:
    assert not corpus_sentence(pytest.fail("read") for _ in range(1))


def test_a_training_says_it_in_record_card_and_log(
    train: Callable[..., Any], benchmark_folder: Path, tmp_path: Path
) -> None:
    scored = load_sts("STS13", data_dirs=[benchmark_folder]).pairs["sentence1"].tolist()
    corpus = tmp_path / "leaking.txt"
    corpus.write_text("".join(f"{text.title()}\n" for text in [*scored, *scored]), encoding="utf-8")
    lines: list[dict[str, Any]] = []
    done = train(corpus=corpus, data_dirs=[benchmark_folder], listeners=[lines.append])
    count = len({letters(text) for text in scored})
    (said,) = [note for note in done.record.notes if note.startswith("the corpus and the distinct sentences")]
    assert re.search(rf"it holds .*{count} of the \d+ of STS13:test \(0 as released\)", said)
    assert said in [line["remark"] for line in lines if line["kind"] == "remark"]
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert f"T{said[1:]}" in card
    assert said in json.loads((done.folder / "run.json").read_text(encoding="utf-8"))["notes"]
