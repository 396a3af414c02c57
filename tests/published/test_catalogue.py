"""Tables, rows, systems and checkpoints are found by name."""

from collections.abc import Callable

import pytest

from stsbench.base.errors import UserError
from stsbench.published.catalogue import (
    checkpoint_by_name,
    checkpoint_of_system,
    checkpoints,
    exhibit,
    identified_checkpoint,
    row,
    system,
    systems,
    table,
)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: row("esimce-bert-bse"), "did you mean .*esimcse-bert-base"),
        (lambda: row("esimcse-coling2022-3/mirror"), "did you mean .*mirror-bert-base"),
        (lambda: row("voidism/diffcse-bert-base"), "there is no published row"),
        (lambda: row("princeton-nlp/sup-simcse-bert-large-uncased"), "no row of sup-simcse-bert-large"),
        (lambda: row("infocse-bert-large"), "only its STS average"),
        (lambda: row("mocose").cell("STS17"), "has no value for 'STS17'"),
        (lambda: system("mocose-bert-bse"), "did you mean .*mocose-bert-base"),
        (lambda: table("zzzzzz"), "stsbench published list"),
        (lambda: exhibit("mocose-acl2022-figur-1"), "did you mean .*mocose-acl2022-figure-1"),
        (lambda: system("nature"), "there is no published system 'nature'"),
    ],
)
def test_an_unknown_name_is_refused_with_similar_ones(call: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        call()


def test_case_and_punctuation_of_a_name_do_not_matter() -> None:
    assert table("MoCoSE ACL2022 1").name == "mocose-acl2022-1"
    assert system("Mirror BERT").name == "mirror-bert-base"
    assert row("ffgcc/ESimCSE-bert-base-uncased").name == "esimcse-coling2022-3/esimcse-bert-base"
    assert exhibit("esimcse coling2022 9").heading == "Table 9"
    preprint = "unsup-simcse-bert-base-preprint"
    averages = [row(name).cell("Avg.").value for name in (preprint, "unsup-simcse-bert-base")]
    assert (averages, systems()[preprint].edition_of) == ([74.54, 76.25], "unsup-simcse-bert-base")


def test_a_cell_has_a_score_from_0_to_100_its_rounding_and_its_place() -> None:
    cell = row("esimcse-arxiv-v1-1/sts12").cell("le3")
    assert (cell.value, cell.score, cell.rounding) == (0.7298, 72.98, pytest.approx(0.005))
    assert cell.place == "esimcse-arxiv-v1.txt, line 39"
    spread = row("promptbert").cell("STS12")
    assert (spread.value, spread.spread, spread.decimals, spread.printed) == (71.56, 0.18, 2, "71.56")
    assert spread.place.startswith("README.md of kongds/Prompt-BERT at 118eb0a4, under")
    assert row("sup-promptbert-bert-base").cell("STS12").spread is None


def test_the_setting_of_a_row_precedes_that_of_its_column_and_its_table() -> None:
    setting = row("esimcse-coling2022-4/word-repetition").cell("STS-B").setting
    assert (setting.task, setting.split, setting.variant) == ("STS-B", "dev", "word repetition only")
    minilm, people = row("minilm"), "hume-sts"
    assert [minilm.cell(task).setting.split for task in ("STS-B", "SICK-R")] == ["test", "all"]
    assert row(f"{people}/two-raters-pearson").cells[0].setting.metric == "pearson"
    assert [row(f"{kind}promptbert-bert-base").usage.pooling for kind in ("", "sup-")] == ["mask", "mask+head"]
    assert row("promptbert").usage.template == 'This sentence of "{sentence}" means {mask}.'


def test_a_checkpoint_is_found_by_hub_name_system_or_alias() -> None:
    entry, minilm = checkpoints()["mirror-bert-base"], checkpoints()["all-minilm-l6-v2"]
    for name in (entry.hub, entry.hub.rpartition("/")[2], entry.name, "Mirror BERT"):
        assert checkpoint_by_name(name) == entry
    assert checkpoint_by_name("minilm") == checkpoint_by_name("sentence-transformers/all-MiniLM-L6-v2") == minilm
    assert checkpoint_by_name("runs/a") is None
    assert checkpoint_of_system("mirror-bert-base") == entry
    assert checkpoint_of_system("glove-avg") is checkpoint_of_system("") is None
    assert checkpoint_by_name("esimcse-bert-base").unverified == ()
    assert checkpoint_by_name("declutr").unverified == ("hub", "max_length")
    assert checkpoint_by_name("ffgcc/esimcse-roberta-large").pooling == "cls_before_pooler"
    assert checkpoint_by_name("sup-simcse-roberta-base").pooling == "cls"


def test_whole_hub_names_and_weights_identify_a_checkpoint_and_a_folder_s_name_does_not() -> None:
    minilm, entry = checkpoints()["all-minilm-l6-v2"], checkpoints()["mirror-bert-base"]
    own_name = entry.hub.rpartition("/")[2]
    assert identified_checkpoint("runs/a", weights_sha256=minilm.weights_sha256) == minilm
    assert identified_checkpoint(entry.hub) == entry
    for name in (own_name, f"/models/{own_name}/", f"somebody/{own_name}", entry.name, "runs/a"):
        assert identified_checkpoint(name) is None
        assert identified_checkpoint(name, weights_sha256="0" * 64) is None
    # Of several poolings yours counts, or the first.
    for pooling, reading in (("", "first-last"), ("avg", "avg"), ("max", "first-last")):
        for hub in ("bert-base-uncased", "google-bert/bert-base-uncased"):
            assert identified_checkpoint(hub, pooling=pooling) == checkpoints()[f"bert-base-{reading}"]
