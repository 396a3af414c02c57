"""The token store holds what the tokenizer gives; batches cover the corpus and need no state."""

from pathlib import Path

import numpy as np
import pytest
from damages import cut, flip, lengthen, make_a_folder
from filelock import FileLock
from transformers import AutoTokenizer

import stsbench as sb
from stsbench.data.corpus import read_rows
from stsbench.training import batches
from stsbench.training.base import find_base
from stsbench.training.batches import BatchReader, Schedule, TokenStore, make_schedule, open_store
from stsbench.training.recipe import read_recipe

REPEATED = "views.key={kind: subword-repetition, rate: 0.5"


@pytest.fixture
def store_of(recipe_file, tmp_path):
    """Return a function that builds a store of some lines of text."""

    def build(lines, *overrides) -> tuple[BatchReader, TokenStore]:
        recipe = read_recipe(recipe_file, overrides)
        base = find_base(recipe, "cpu")
        path = tmp_path / "lines.tsv"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        rows, meaning = read_rows(path, recipe.corpus.columns), {"lines": list(lines)}
        limits = {"limit": recipe.corpus.max_length - 2, "with_text": recipe.reads_text}
        store = open_store(tmp_path / "tokens", meaning, rows, base.tokenizer, **limits)
        return BatchReader(store, base.tokenizer, recipe, base.longest), store

    return build


@pytest.fixture
def tokenizer(base):
    return AutoTokenizer.from_pretrained(base)


LINES = [
    "A cat sat on the mat.",
    "",
    "   ",
    "Rain.",
    "The old river rose over the green field all night long again.",
]


def test_the_store_holds_the_tokens_counts_empty_lines_and_cuts_long_ones(store_of, tokenizer):
    _, store = store_of(LINES)
    whole = [tokenizer(line, add_special_tokens=False)["input_ids"] for line in LINES if line.strip()]
    assert [store.tokens(row, 0).tolist() for row in range(len(store))] == [ids[:10] for ids in whole]
    assert (store.counts.rows, store.counts.empty) == (3, 2)
    assert store.counts.cut == sum(len(ids) > 10 for ids in whole) > 0
    assert "left out 2 empty rows" in store.counts.sentence()


def test_a_store_is_built_once_and_mapped(store_of, tmp_path):
    _, first = store_of(LINES)
    (file,) = (tmp_path / "tokens").glob("*/sentences.arrow")
    stamp = file.stat().st_mtime_ns
    _, again = store_of(LINES)
    assert file.stat().st_mtime_ns == stamp
    assert again.counts == first.counts
    assert not first.tokens(0, 0).flags.owndata


def test_a_corpus_without_a_sentence_is_refused_and_leaves_nothing(store_of, tmp_path):
    with pytest.raises(sb.UserError, match="the corpus has no sentences"):
        store_of(["", " "])
    assert not [path for path in (tmp_path / "tokens").iterdir() if path.is_dir()]


@pytest.mark.parametrize(("rows", "batch", "accumulate"), [(42, 8, 1), (42, 8, 2), (40, 8, 1), (9, 4, 3)])
def test_each_epoch_reads_each_row_once_in_an_order_of_its_own(rows, batch, accumulate):
    schedule = Schedule(rows, batch, accumulate, seed=1)
    count = 3 * schedule.steps_per_epoch
    steps = [schedule.batches(step) for step in range(count)]
    epochs = [steps[at : at + schedule.steps_per_epoch] for at in range(0, count, schedule.steps_per_epoch)]
    orders = [np.concatenate([part for step in epoch for part in step]).tolist() for epoch in epochs]
    assert len(orders) == 3
    assert all(sorted(order) == list(range(rows)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    sizes = [len(part) for step in epochs[0] for part in step]
    assert set(sizes[:-1]) == {batch}
    assert sizes[-1] == (rows % batch or batch)
    assert [step for step in range(count) if schedule.starts_epoch(step)] == [
        schedule.steps_per_epoch * epoch for epoch in range(3)
    ]
    other = Schedule(rows, batch, accumulate, seed=2)
    assert np.concatenate(other.batches(0)).tolist() != np.concatenate(schedule.batches(0)).tolist()


@pytest.mark.parametrize("accumulate", [1, 3])
def test_batches_of_buckets_hold_one_bucket_each_and_every_row_once(accumulate):
    bucket = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [17, 9, 30]))
    schedule = Schedule(56, 8, accumulate, seed=1, bucket=bucket)
    epochs = []
    for epoch in range(2):
        steps = range(epoch * schedule.steps_per_epoch, (epoch + 1) * schedule.steps_per_epoch)
        batches = [batch for step in steps for batch in schedule.batches(step)]
        assert sorted(np.concatenate(batches).tolist()) == list(range(56))
        assert all(len(set(bucket[batch])) == 1 for batch in batches)
        # 17 = 8 + 9 and 9: what would stand alone in its batch joins the one before.
        assert sorted(map(len, batches)) == [6, 8, 8, 8, 8, 9, 9]
        epochs.append([batch.tolist() for batch in batches])
    assert epochs[0] != epochs[1]
    kinds = [bucket[batch[0]] for batch in epochs[0]]
    assert kinds != sorted(kinds)  # the buckets' batches are mixed


def test_buckets_are_by_sub_words_of_the_first_sentence(store_of):
    reader, store = store_of(["the", "of the", "the of the", "of the of the", "the of the of the"])
    assert store.lengths().tolist() == [1, 2, 3, 4, 5]

    def recipe(*buckets):
        corpus = reader.recipe.corpus.model_copy(update={"buckets": buckets})
        optimiser = reader.recipe.optimiser.model_copy(update={"batch": 2})
        return reader.recipe.model_copy(update={"corpus": corpus, "optimiser": optimiser})

    assert make_schedule(recipe(3), store).bucket.tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(sb.UserError, match="a bucket has a single sentence"):
        make_schedule(recipe(1, 3), store)


TWELVE = ["one two three four five six seven eight nine ten eleven twelve"] * 30


def test_the_key_alone_is_repeated_by_seed_and_name_and_cut_to_the_maximum_length(store_of, tokenizer):
    reader, _ = store_of(TWELVE, REPEATED + "}")
    rows = np.arange(30)
    first, again, other = reader(rows, "3"), reader(rows, "3"), reader(rows, "4")
    assert all(map(np.array_equal, first.key, again.key))
    assert not all(map(np.array_equal, first.key, other.key))
    assert all(map(np.array_equal, first.query, other.query))
    assert all(len(query) == 12 for query in first.query)
    assert max(map(len, first.key)) == 12
    ends = (tokenizer.cls_token_id, tokenizer.sep_token_id)
    assert all((ids[0], ids[-1]) == ends for ids in [*first.query, *first.key])


def test_the_released_repetition_is_drawn_once_a_sentence_and_not_cut(store_of):
    reader, _ = store_of(TWELVE, REPEATED + ", variant: released}")
    rows = np.arange(30)
    first, later = reader(rows, "0"), reader(rows[::-1], "9")
    assert max(map(len, first.key)) > 12
    assert all(map(np.array_equal, first.key, later.key[::-1]))


def test_pairs_and_hard_negatives_go_where_they_belong(store_of, tokenizer):
    lines = [f"the cat {n}\tthe mat {n}\tthe river {n}" for n in range(8)]
    reader, store = store_of(lines, "corpus.columns=3", "negatives.hard.weight=1")
    batch = reader(np.array([5]), "0")
    read = [side[0].tolist() for side in (batch.query, batch.key, batch.hard)]
    assert read == [tokenizer(text)["input_ids"] for text in ("the cat 5", "the mat 5", "the river 5")]
    assert store.counts.columns == 3


def test_a_store_that_another_process_clears_at_the_same_time_is_skipped(monkeypatch):
    folder = batches.tokens_dir() / "abc"
    folder.mkdir(parents=True)
    (folder / "about.json").write_text("{}", encoding="utf-8")
    freed = []

    def after_another(path):
        monkeypatch.setattr(batches, "FileLock", FileLock)
        freed.append(batches.clear_stores())
        return FileLock(path)

    monkeypatch.setattr(batches, "FileLock", after_another)
    freed.append(batches.clear_stores())
    assert freed == [2, 0]


DAMAGES = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "half": cut,
    "a bit turned": flip,
    "longer": lengthen,
    "a folder": make_a_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_made_again_and_told(store_of, tmp_path, caplog, damage):
    _, store = store_of(LINES)
    tokens = [store.tokens(row, 0).tolist() for row in range(len(store))]
    (about,) = (tmp_path / "tokens").glob("*/about.json")
    names = sorted(path.name for path in about.parent.iterdir())
    assert names == ["about.json", "sentences.arrow"]
    for name in names:
        caplog.clear()
        DAMAGES[damage](about.parent / name)
        _, again = store_of(LINES)
        assert [again.tokens(row, 0).tolist() for row in range(len(again))] == tokens
        assert again.counts == store.counts
        assert "was damaged and is made again" in caplog.text
    caplog.clear()
    store_of(LINES)
    assert not caplog.text
