"""Prompts by name and by side: the texts before sentences are the library's, and no side is mixed up."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.encoders.cache import cache_files
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.use import use_signature
from stsbench.records.signature import Signature
from stsbench.records.store import load_run

pytest.importorskip("sentence_transformers")

PROMPTS = {"query": "so she ", "passage": "the dog ", "short": "Q", "again": "so she "}
NATIVELY, BY_LIBRARY = "sentence-transformers", "sentence-transformers-library"
OF_PAIRS = {"length-bias", "pair-kinds", "density", "ties"}
"""The analyses of pairs' similarities, which have their sides."""

Prompted = Callable[..., Path]


@pytest.fixture
def prompted(tiny: Callable[..., Path]) -> Prompted:
    """Return a function that saves a tiny checkpoint with named prompts as the current library does."""

    def build(*, include_prompt: bool = True, default: str | None = None) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules

        pooling = modules.Pooling(32, pooling_mode="mean", include_prompt=include_prompt)
        folder = tiny(name=f"tiny-{include_prompt}-{default}")
        saved = folder.with_name(f"{folder.name}-st")
        model = SentenceTransformer(
            modules=[modules.Transformer(str(folder)), pooling],
            device="cpu",
            prompts=PROMPTS,
            default_prompt_name=default,
        )
        for name, parameter in model.named_parameters():
            # Random ones make all sentences nearly alike, whose ranks are a matter of rounding.
            if "LayerNorm" in name:
                parameter.data.fill_(float(name.endswith("weight")))
        model.save(str(saved))
        return saved

    return build


def by_library(folder: Path, texts: Sequence[str], **prompt: Any) -> NDArray[np.float32]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    vectors: NDArray[np.float32] = model.encode(list(texts), show_progress_bar=False, **prompt)
    return vectors


def library_score(folder: Path, data: StsData, first: str, second: str) -> float:
    """Return Spearman's correlation of the cosines as the library alone gives it."""
    left = by_library(folder, list(data.pairs["sentence1"]), prompt=first)
    right = by_library(folder, list(data.pairs["sentence2"]), prompt=second)
    cosines = (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    return float(spearmanr(cosines, data.pairs["gold"]).statistic)


@pytest.mark.parametrize(("include_prompt", "kind"), [(True, NATIVELY), (False, BY_LIBRARY)])
def test_named_and_default_prompts_give_the_librarys_vectors_whether_they_are_pooled_or_not(
    include_prompt: bool, kind: str, prompted: Prompted, sentences: list[str], vectors_of: Callable[..., Any]
) -> None:
    plain, with_default = (prompted(include_prompt=include_prompt, default=name) for name in (None, "passage"))
    seen = []
    for folder, name, text in (
        (plain, "query", "so she "),
        (with_default, "query", "so she "),
        (with_default, None, "the dog "),
        (plain, None, ""),
    ):
        encoder = load(folder, prompt_name=name)
        assert (encoder.identity.kind, encoder.identity.use.prompt) == (kind, text)
        ours = vectors_of(encoder, sentences)
        np.testing.assert_allclose(ours, by_library(folder, sentences, prompt_name=name), rtol=0, atol=1e-6)
        seen.append(ours)
    assert not np.allclose(seen[0], seen[2], atol=1e-3)
    assert not np.allclose(seen[0], seen[3], atol=1e-3)


def test_a_prompts_text_is_what_an_identity_a_signature_and_the_cache_have_not_its_name(
    prompted: Prompted, sentences: list[str]
) -> None:
    folder = prompted()
    named, told = load(folder, prompt_name="query"), load(folder, prompt="so she ")
    assert named.identity == told.identity
    assert named.identity.use.prompt_name is None
    assert "|prompt:so%20she%20|" in f"|{use_signature(named.identity.use)}|"
    embed(told, sentences)
    assert embed(named, sentences).cost.encoded == 0
    assert any("its prompt 'query', 'so she ', is put before every sentence" in note for note in named.notes)


@pytest.mark.parametrize("include_prompt", [True, False])
def test_each_side_is_read_with_its_own_prompt(
    include_prompt: bool, prompted: Prompted, toy_data: Callable[..., StsData]
) -> None:
    folder, data = prompted(include_prompt=include_prompt, default="short"), toy_data()
    signatures = set()
    for asked, first, second in (
        ("query,passage", "so she ", "the dog "),
        (("passage", "query"), "the dog ", "so she "),
        ('"to, fro: ",', "to, fro: ", ""),
        ("short,", "Q", ""),
        ('"a|b, c: ",passage', "a|b, c: ", "the dog "),
    ):
        record = sb.evaluate(load(folder, prompts=asked), data)
        assert record.model.use.prompts == record.signatures[0].use.prompts == (first, second)
        expected = library_score(folder, data, first, second)
        assert record.scores[0].value == pytest.approx(expected, abs=1e-6)
        assert Signature.parse(record.signature) == record.signatures[0]
        signatures.add(record.signature)
    assert len(signatures) == 5
    assert "|prompts:a%7Cb%2C%20c%3A%20,the%20dog%20|" in record.signature


def test_each_sentence_is_encoded_once_a_side_and_found_again_where_one_prompt_was_for_all(
    prompted: Prompted, toy_data: Callable[..., StsData]
) -> None:
    folder, data = prompted(), toy_data()
    first, second = (set(data.pairs[side]) for side in ("sentence1", "sentence2"))
    measured = sb.evaluate(load(folder, prompts="query,passage"), data)
    assert measured.encoding["texts"] == measured.encoding["encoded"] == len(first) + len(second)
    assert len(cache_files()) == 2
    alone = sb.evaluate(load(folder, prompt_name="query"), data)
    assert alone.encoding["encoded"] == len(first | second) - len(first)
    again = sb.evaluate(load(folder, prompts=("query", "passage")), data)
    assert again.encoding["encoded"] == 0
    assert again.scores == measured.scores
    twice = sb.evaluate(load(folder, prompts="query,again"), data)
    assert (twice.model, twice.scores) == (alone.model, alone.scores), "two equal prompts are one"


@pytest.mark.parametrize("of_record", [False, True])
def test_what_asks_for_vectors_without_a_side_is_refused_and_what_compares_pairs_is_not(
    of_record: bool, prompted: Prompted, tmp_path: Path
) -> None:
    from stsbench.analysis import analyses

    folder = prompted()
    made = sb.evaluate(load(folder, prompts="query,passage"), "sample", out=tmp_path / "run")
    subject: Any = load_run(tmp_path / "run") if of_record else load(folder, prompts="query,passage")
    explained = sb.explain(subject, leave_out=True)
    assert set(explained.parts) == OF_PAIRS
    assert set(explained.missing) == set(analyses()) - OF_PAIRS
    refused = "has a prompt for each side of a pair"
    assert all(refused in why for why in explained.missing.values())
    assert made.scores[0].items == 252


def test_tasks_of_single_sentences_a_diagnosis_and_a_fit_refuse_a_prompt_for_each_side(
    prompted: Prompted, tmp_path: Path
) -> None:
    encoder = load(prompted(), prompts="query,passage")
    with pytest.raises(sb.UserError, match=r"sample-movies has single sentences.*--prompt"):
        sb.evaluate(encoder, "sample-transfer")
    for verb in (
        lambda: sb.diagnose(encoder, 50.0, tasks="sample"),
        lambda: sb.fit("whitening", encoder, sentences="sample", out=tmp_path / "w"),
    ):
        with pytest.raises(sb.UserError, match="has a prompt for each side of a pair"):
            verb()
    assert not (tmp_path / "w").exists()
