"""What is there, and how it is found."""

import re
from collections import Counter

import pytest
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.encoders.poolers import parse_pooling
from stsbench.published.catalogue import (
    checkpoint_of_system,
    checkpoints,
    find_rows,
    identified_checkpoint,
    known_checkpoint,
    papers,
    row,
    rows,
    system,
    systems,
    table,
    tables,
)
from stsbench.published.lookup import cells_frame, show_table
from stsbench.published.schema import PublishedCell, PublishedTable

ALL_CELLS = [cell for found in rows().values() for cell in found.cells]

# Typed from the papers, not copied from the entries.
SAMPLE = {
    ("simcse-slides-overview/sup-simcse-bert-base", "delta"): 4.6,
    ("simcse-slides-augmentations/word-deletion-20", "STS-B"): 71.2,
    ("simcse-slides-augmentations/delete-one-word-no-dropout", "STS-B"): 71.4,
    ("simcse-slides-dropout/dropout-0.2", "STS-B"): 78.2,
    ("simcse-slides-dropout/fixed-0.1", "STS-B"): 45.2,
    ("simcse-slides-sts/unsup-simcse-bert-base-preprint", "Avg."): 74.54,
    ("simcse-slides-sts/sup-simcse-roberta-large", "STS13"): 87.27,
    ("simcse-slides-sts/universal-sentence-encoder", "SICK-R"): 76.69,
    ("simcse-slides-transfer/skip-thought", "TREC"): 92.20,
    ("simcse-slides-transfer/unsup-simcse-roberta-base-preprint", "MRPC"): 64.93,
    ("simcse-slides-transfer/unsup-simcse-roberta-large-mlm-preprint", "Avg."): 87.16,
    ("simcse-slides-transfer/sup-simcse-roberta-large-mlm", "SUBJ"): 95.19,
    ("simcse-slides-supervised-data/paranmt", "full"): 78.7,
    ("simcse-slides-supervised-data/contradiction", "sample"): 77.5,
    ("simcse-slides-supervised-data/entailment-hard-negatives", "full"): 86.2,
    ("simcse-slides-batch-size/batch-64", "STS-B"): 85.6,
    ("simcse-slides-pooling-and-mlm/mlm-0.1", "transfer"): 86.2,
    ("esimcse-arxiv-v1-1/sts14", "gt3"): 0.6676,
    ("esimcse-arxiv-v1-3/train", "STS-B"): 5749,
    ("esimcse-arxiv-v1-4/esimcse-roberta-large", "delta"): 0.26,
    ("esimcse-arxiv-v1-5/esimcse-bert-large", "SICK-R"): 74.89,
    ("esimcse-arxiv-v1-5/unsup-simcse-roberta-base", "STS16"): 80.65,
    ("esimcse-arxiv-v1-6/momentum-contrast", "STS-B"): 83.98,
    ("esimcse-arxiv-v1-7/word-repetition", "Avg."): 77.43,
    ("esimcse-arxiv-v1-8/dropout-0.2", "STS-B"): 83.37,
    ("esimcse-arxiv-v1-9/dup_rate-0.24", "STS-B"): 84.24,
    ("esimcse-arxiv-v1-10/mask", "STS-B"): 83.08,
    ("esimcse-arxiv-v1-11/queue-2x", "STS-B"): 83.03,
    ("esimcse-coling2022-1/le3", "delta"): 1.84,
    ("esimcse-coling2022-3/sg-opt-bert-large", "STS15"): 81.72,
    ("esimcse-coling2022-3/consert-bert-base", "Avg."): 72.74,
    ("esimcse-coling2022-3/mirror-roberta-base", "STS13"): 82.70,
    ("esimcse-coling2022-4/word-repetition", "delta"): 1.64,
    ("esimcse-coling2022-5/masked-prediction", "STS-B"): 84.18,
    ("esimcse-coling2022-6/buc_len-3-8", "STS-B"): 82.18,
    ("esimcse-coling2022-6/buc_len-7", "STS-B"): 82.13,
    ("esimcse-coling2022-7/esimcse-gt3", "STS16"): 34.71,
    ("esimcse-coling2022-8/simcse", "q-s2"): 27.07,
    ("esimcse-coling2022-9/dup_rate-0.08", "STS-B"): 83.5,
    ("esimcse-coling2022-10/queue-2.5x", "STS-B"): 84.85,
    ("mocose-acl2022-1/mocose-bert-base", "STS12"): 71.48,
    ("mocose-acl2022-1/roberta-base-first-last", "STS16"): 61.48,
    ("mocose-acl2022-1/declutr-roberta-base", "Avg."): 69.99,
    ("mocose-acl2022-2/mocose-bert-large", "MRPC"): 76.81,
    ("mocose-acl2022-2/unsup-simcse-roberta-large", "MRPC"): 69.68,
    ("mocose-acl2022-3/ema-0.5", "Avg."): 75.76,
    ("mocose-acl2022-3/ema-0.85", "Avg."): 76.49,
    ("mocose-acl2022-4/projection-1-prediction-2", "Corr."): 76.89,
    ("mocose-acl2022-4/projection-3-prediction-1", "Corr."): 31.51,
    ("mocose-acl2022-5/typos", "Avg."): 22.32,
    ("mocose-acl2022-6/batch-256", "Avg."): 76.60,
    ("mocose-acl2022-6/dim-2048", "Avg."): 77.03,
    ("mocose-acl2022-7/initial-quarter", "queue-512"): 77.30,
    ("mocose-acl2022-7/initial-half", "queue-4096"): 38.74,
    ("mocose-acl2022-8/slice-512-1024", "Avg."): 75.71,
    ("mocose-acl2022-9/fgsm-1e-8", "Avg."): 75.39,
    ("gaussian-dropout-simcse-cs224n-results/gaussian", "sts"): 0.329,
    ("gaussian-dropout-simcse-cs224n-results/gaussian", "sentiment-delta"): -0.029,
    ("mteb-all-minilm-l6-v2/all-minilm-l6-v2", "STS12"): 0.72369,
}

# Every system that the papers name has a row of its own, under the name that people use.
NAMED = {
    "GloVe": "glove",
    "BERT first-last": "bert-base-first-last",
    "RoBERTa first-last": "roberta-base-first-last",
    "flow": "bert-flow",
    "whitening": "bert-whitening",
    "IS-BERT": "is-bert",
    "CT": "ct-bert",
    "DeCLUTR": "declutr",
    "ConSERT": "consert",
    "SG-OPT": "sg-opt",
    "Mirror-BERT": "mirror-bert",
    "InferSent": "infersent",
    "USE": "use",
    "SBERT": "sbert",
    "SRoBERTa": "sroberta",
    "Skip-thought": "skip-thought",
    "MoCoSE base": "mocose-bert-base",
    "MoCoSE large": "mocose-bert-large",
    **{f"ESimCSE {m}": f"esimcse-{m}" for m in ("bert-base", "bert-large", "roberta-base", "roberta-large")},
    **{f"SimCSE {m}": f"unsup-simcse-{m}" for m in ("bert-base", "bert-large", "roberta-base", "roberta-large")},
    **{f"supervised {m}": f"sup-simcse-{m}" for m in ("bert-base", "roberta-base", "roberta-large")},
    **{f"with MLM {m}": f"unsup-simcse-{m}-mlm" for m in ("bert-base", "roberta-base", "roberta-large")},
    **{f"supervised with MLM {m}": f"sup-simcse-{m}-mlm" for m in ("bert-base", "roberta-base", "roberta-large")},
    **{f"preprint {m}": f"unsup-simcse-{m}-preprint" for m in ("bert-base", "roberta-base", "roberta-large")},
}


def test_every_paper_has_all_of_its_tables() -> None:
    assert Counter(table.paper for table in tables().values() if not papers()[table.paper].repository) == {
        "simcse-slides": 8,
        "esimcse-arxiv-v1": 11,
        "esimcse-coling2022": 11,
        "mocose-acl2022": 9,
        "gaussian-dropout-simcse-cs224n": 1,
        "mteb": 1,
    }
    for paper in ("esimcse-arxiv-v1", "esimcse-coling2022"):
        assert [t.number for t in tables().values() if t.paper == paper] == list(map(str, range(1, 12)))
    assert [t.number for t in tables().values() if t.paper == "mocose-acl2022"] == list(map(str, range(1, 10)))


def test_the_only_table_without_rows_is_the_one_that_the_extracted_text_lacks() -> None:
    assert [table.name for table in tables().values() if not table.rows] == ["esimcse-coling2022-11"]


@pytest.mark.parametrize(("place", "value"), SAMPLE.items(), ids=str)
def test_sampled_values_are_those_of_the_papers(place: tuple[str, str], value: float) -> None:
    assert row(place[0]).cell(place[1]).value == value


@pytest.mark.parametrize("name", NAMED.values(), ids=NAMED)
def test_every_named_system_has_a_row_with_an_average(name: str) -> None:
    assert row(name).cell("Avg.").value


def test_the_preprint_s_row_and_the_final_one_are_two_and_linked() -> None:
    assert row("unsup-simcse-bert-base").cell("Avg.").value == 76.25
    assert row("unsup-simcse-bert-base-preprint").cell("Avg.").value == 74.54
    assert systems()["unsup-simcse-bert-base-preprint"].edition_of == "unsup-simcse-bert-base"


def test_every_garbled_cell_says_how_it_was_restored_and_on_what_evidence() -> None:
    for cell in ALL_CELLS:
        if cell.status in {"restored", "derived"}:
            assert cell.how
            assert cell.evidence, cell
        if cell.status == "lost":
            assert cell.value is None
            assert len(cell.how) > 20, cell


def test_a_printed_cell_is_its_string_read_as_a_number() -> None:
    for cell in ALL_CELLS:
        if cell.status == "printed":
            assert cell.value == float(cell.raw.partition("±")[0].strip("(+%)").replace(",", "")), cell


def test_a_lost_decimal_point_that_nobody_restored_is_refused() -> None:
    entry = tables()["mocose-acl2022-6"].model_dump()
    entry["rows"][0]["restored"] = ()
    with pytest.raises(ValidationError, match="outside the unit"):
        PublishedTable.model_validate(entry)


def test_a_string_that_is_no_number_is_refused() -> None:
    entry = tables()["simcse-slides-batch-size"].model_dump()
    entry["rows"][1]["restored"] = ()
    with pytest.raises(ValidationError, match="restore it, or say why it is lost"):
        PublishedTable.model_validate(entry)


def test_a_misspelt_key_is_refused() -> None:
    entry = tables()["mocose-acl2022-6"].model_dump() | {"captionline": 3}
    with pytest.raises(ValidationError, match="captionline"):
        PublishedTable.model_validate(entry)


def test_a_row_with_a_cell_too_few_is_refused() -> None:
    entry = tables()["mocose-acl2022-1"].model_dump()
    entry["rows"][0]["cells"] = entry["rows"][0]["cells"][:-1]
    with pytest.raises(ValidationError, match="7 cells for 8 columns"):
        PublishedTable.model_validate(entry)


@pytest.mark.parametrize(
    ("asked", "close"),
    [
        ("esimce-bert-bse", "esimcse-bert-base"),
        ("mocosee", "mocose"),
        ("esimcse-coling2022-3/mirror", "mirror-bert-base"),
    ],
)
def test_an_unknown_row_names_close_ones_in_one_sentence(asked: str, close: str) -> None:
    with pytest.raises(UserError, match=f"did you mean .*{close}"):
        row(asked)


def test_an_unknown_name_that_nothing_is_close_to_names_the_list() -> None:
    with pytest.raises(UserError, match="stsbench published list"):
        table("zzzzzz")


def test_a_system_without_a_row_says_why() -> None:
    with pytest.raises(UserError, match="no row of sup-simcse-bert-large is published"):
        row("princeton-nlp/sup-simcse-bert-large-uncased")


def test_names_are_found_whatever_their_case_and_punctuation() -> None:
    assert table("MoCoSE ACL2022 1").name == "mocose-acl2022-1"
    assert system("Mirror BERT").name == "mirror-bert-base"
    assert row("ffgcc/ESimCSE-bert-base-uncased").name == "esimcse-coling2022-3/esimcse-bert-base"


def test_rows_are_found_by_model_paper_table_task_and_variant() -> None:
    found = find_rows("unsup-simcse-bert-base", task="STS16", variant="")
    assert {cell.column for one in found for cell in one.cells} >= {"STS16"}
    texts = {paper.name for paper in papers().values() if not paper.repository}
    assert {one.paper.name for one in found} == texts - {"gaussian-dropout-simcse-cs224n", "mteb"}
    assert [one.name for one in find_rows("mocose", paper="mocose-acl2022", variant="fgsm 1e-9")] == [
        "mocose-acl2022-9/fgsm-1e-9"
    ]
    assert len(find_rows(table="mocose-acl2022-2")) == 9
    assert find_rows("esimcse", split="dev", table="esimcse-coling2022-4")
    with pytest.raises(UserError, match="no paper"):
        find_rows(paper="nature")


def test_tables_and_cells_come_as_dataframes() -> None:
    frame = show_table("esimcse-coling2022-3").table()[0].frame
    assert frame.shape == (18, 9)
    assert frame.set_index("row").loc["ct-bert-base", "STS13"] == 76.80
    cells = cells_frame([row("mocose-bert-base")])
    assert cells.loc[0, ["value", "raw", "line", "status"]].tolist() == [71.48, "7148", 415, "restored"]


def test_counts_beside_scores_are_whole_numbers() -> None:
    printed = show_table("hume-sts").table()[0].to("markdown")
    counts = next(line for line in printed.splitlines() if line.startswith("| pairs "))
    assert "." not in counts
    assert re.search(r"\d\.\d", printed)


def test_each_checkpoint_says_what_to_load_how_to_pool_and_what_to_expect() -> None:
    for entry in checkpoints().values():
        parse_pooling(entry.pooling)
        assert entry.hub or "Not on the Hub" in entry.note
        assert entry.system in systems() if entry.system else entry.prompt
        assert entry.expected or entry.listed_average or not entry.system
        assert all(row(name).row.system == entry.system for name in entry.expected)


def test_what_no_document_gives_is_marked_unverified() -> None:
    assert known_checkpoint("esimcse-bert-base").unverified == ()
    assert "hub" in known_checkpoint("declutr").unverified
    assert "pooling" in known_checkpoint("mirror-bert").unverified
    assert known_checkpoint("ffgcc/esimcse-roberta-large").pooling == "cls_before_pooler"
    assert known_checkpoint("sup-simcse-roberta-base").pooling == "cls"


def test_a_checkpoint_is_named_by_hub_name_system_or_alias() -> None:
    entry = checkpoints()["mirror-bert-base"]
    for name in (entry.hub, entry.hub.rpartition("/")[2], entry.name, "Mirror BERT"):
        assert known_checkpoint(name) == entry
    minilm = checkpoints()["all-minilm-l6-v2"]
    assert known_checkpoint("minilm") == known_checkpoint("sentence-transformers/all-MiniLM-L6-v2") == minilm
    assert known_checkpoint("runs/a") is None


def test_whole_hub_names_and_weights_identify_a_checkpoint_and_a_folders_name_does_not() -> None:
    minilm, entry = checkpoints()["all-minilm-l6-v2"], checkpoints()["mirror-bert-base"]
    own_name = entry.hub.rpartition("/")[2]
    assert identified_checkpoint("runs/a", weights_sha256=minilm.weights_sha256) == minilm
    assert identified_checkpoint(entry.hub) == entry
    for name in (own_name, f"/models/{own_name}/", f"somebody/{own_name}", entry.name, "runs/a"):
        assert identified_checkpoint(name) is None
        assert identified_checkpoint(name, weights_sha256="0" * 64) is None


def test_where_a_checkpoint_has_rows_with_several_poolings_the_first_or_the_pooling_asked_for_counts() -> None:
    assert known_checkpoint("google-bert/bert-base-uncased") == checkpoints()["bert-base-first-last"]
    for pooling, name in (("avg", "bert-base-avg"), ("cls_before_pooler", "bert-base-cls")):
        assert known_checkpoint("bert-base-uncased", pooling=pooling) == checkpoints()[name]
    assert known_checkpoint("bert-base-uncased", pooling="max") == checkpoints()["bert-base-first-last"]


def test_the_checkpoint_of_a_system_is_known_and_a_row_of_counts_has_none() -> None:
    entry = checkpoint_of_system("esimcse-bert-base")
    assert entry is not None
    assert entry.hub == "ffgcc/esimcse-bert-base-uncased"
    assert checkpoint_of_system("glove-avg") is None
    assert checkpoint_of_system("") is None


def test_every_checkpoint_has_a_citation() -> None:
    assert all(entry.citation.startswith("@") for entry in checkpoints().values())


def test_a_score_is_on_the_scale_from_0_to_100_whatever_the_print() -> None:
    cell = row("esimcse-arxiv-v1-1/sts12").cell("le3")
    assert isinstance(cell, PublishedCell)
    assert (cell.value, cell.score, cell.rounding) == (0.7298, 72.98, pytest.approx(0.005))
