"""Views: which pairs they leave, what they are called, and what their data's hash is over."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sts
from stsbench.data.tables import StsData, combined_sha256, folded_ids, pair_ids
from stsbench.data.views import PairView
from stsbench.records.signature import differing_fields


def pairs_in(data: StsData) -> list[int]:
    return pair_ids(*(folded_ids(data.pairs[side]) for side in ("sentence1", "sentence2"))).tolist()


@pytest.mark.shared
def test_of_stsbs_test_pairs_372_are_in_no_task_before_it(senteval: Path) -> None:
    data = load_sts("STS-B", data_dirs=[senteval])
    (clean,) = PairView(overlap=True).of([data], [senteval])
    assert (clean.split, len(clean.pairs)) == ("test~overlap", 372)
    years = set().union(*(pairs_in(load_sts(f"STS{year}", data_dirs=[senteval])) for year in range(12, 17)))
    assert not set(pairs_in(clean)) & years
    assert set(pairs_in(data)) - years == set(pairs_in(clean))
    assert clean.sha256 == combined_sha256(clean.files) != data.sha256
    assert clean.status == "verified"
    assert clean.notes == ("STS-B: left out 1,007 of 1,379 pairs that are pairs of an earlier task.",)
    (first,) = PairView(overlap=True).of([load_sts("STS12", data_dirs=[senteval])], [senteval])
    assert len(first.pairs) == 3108


def test_a_pair_with_a_sentence_of_the_corpus_is_left_out(
    toy_data: Callable[..., StsData], tmp_path: Path, hash_encode: Callable[..., object]
) -> None:
    data = toy_data()
    gone = data.pairs["sentence2"].iloc[3]
    corpus = tmp_path / "train.txt"
    corpus.write_text(f"{gone.upper()} !\n", encoding="utf-8")
    (clean,) = PairView(corpora=(corpus,)).of([data])
    kept = (data.pairs["sentence1"] != gone) & (data.pairs["sentence2"] != gone)
    assert clean.pairs["pair_id"].tolist() == data.pairs.loc[kept, "pair_id"].tolist()
    whole = sb.evaluate(hash_encode, data)
    record = sb.evaluate(hash_encode, data, out=tmp_path / "run", view=PairView(corpora=[corpus]))
    assert record.scores[0].items == int(kept.sum())
    assert record.signature.startswith("toy:test~train.txt:all|")
    assert any("have a sentence of train.txt" in note for note in record.notes)
    assert set(differing_fields(record.signatures[0], whole.signatures[0])) == {"split", "data"}
    assert sb.load_run(tmp_path / "run").items["split"].unique().tolist() == ["test~train.txt"]
    # The same name with other sentences is another view.
    corpus.write_text("nothing of that\n", encoding="utf-8")
    other = sb.evaluate(hash_encode, data, view=PairView(corpora=[corpus]))
    assert differing_fields(record.signatures[0], other.signatures[0]) == ("data",)


def test_what_leaves_nothing_to_score_is_told(toy_data: Callable[..., StsData], tmp_path: Path) -> None:
    data = toy_data(pairs=6)
    corpus = tmp_path / "all.txt"
    corpus.write_text("\n".join(data.pairs["sentence1"]), encoding="utf-8")
    with pytest.raises(UserError, match=r"toy: no pairs are left\. toy: left out 6 of 6 pairs"):
        PairView(corpora=(corpus,)).of([data])
    one = replace(data, pairs=data.pairs.head(1))
    corpus.write_text("nothing of that\n", encoding="utf-8")
    for task, message in (
        (one, "has 1 scored pairs"),
        ("sample-questions", "measure sample-questions in a separate run"),
    ):
        with pytest.raises(UserError, match=message):
            sb.evaluate(lambda texts: [[len(text)] for text in texts], task, view=PairView(corpora=[corpus]))
