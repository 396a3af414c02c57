"""Which printed differences the tasks' pairs could tell from chance: the rule, the rows, the command."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm, t
from typer.testing import CliRunner

from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.published.catalogue import row, rows_of, table, tables
from stsbench.published.lookup import show_table
from stsbench.published.measured import seeds
from stsbench.published.resolution import (
    Facts,
    answer,
    baseline,
    differences,
    facts,
    resolved,
    scored_cells,
    smallest_told,
    two_seeds,
)

FACTS = Facts(
    {
        "one": {"STS16": (60.0, 2.0), "Avg. STS": (60.0, 0.8)},
        "two": {"STS16": (80.0, 1.0), "Avg. STS": (80.0, 0.5)},
    },
    (("one", "two", {"STS16": (0.5, 20.0), "Avg. STS": (0.2, math.inf)}),),
    "invented",
)


def test_the_smallest_difference_told_is_the_one_that_student_s_test_just_tells():
    error = math.sqrt(0.6**2 + 0.4**2 - 2 * 0.7 * 0.6 * 0.4)
    assert smallest_told((0.6, 0.4), 0.7) == pytest.approx(norm.ppf(0.975) * error)
    assert smallest_told((0.6, 0.4), 0.7, df=9.0) == pytest.approx(t.ppf(0.975, 9) * error)
    assert smallest_told((0.5, 0.5), 1.0) == 0.0


def test_a_standard_error_is_that_of_the_nearest_score_on_fisher_s_scale():
    assert FACTS.standard_error("STS16", 80.0) == pytest.approx(1.0)
    assert FACTS.standard_error("STS16", 75.0) == pytest.approx((1 - 0.75**2) / (1 - 0.8**2))
    assert FACTS.standard_error("STS16", 61.0) == pytest.approx(2.0 * (1 - 0.61**2) / (1 - 0.6**2))
    assert FACTS.standard_error("STS16", 80.0, without="two") == pytest.approx(2.0 * (1 - 0.8**2) / (1 - 0.6**2))


def test_there_are_three_answers_and_rounding_counts_against_the_first_two():
    smallest = (0.5, 1.5)
    assert [answer(value, smallest) for value in (1.51, -1.51, 1.5, 0.51, 0.5, -0.1)] == [
        *("real", "real", "depends", "depends", "not told", "not told")
    ]
    assert [answer(value, smallest, rounding=0.02) for value in (1.51, 0.49)] == ["depends", "depends"]


def test_every_pair_of_encoders_counts_and_the_least_alike_make_a_difference_hardest_to_tell():
    known = facts()
    errors = known.standard_error("STS-B", 80.17), known.standard_error("STS-B", 76.85)
    told = []
    for _, _, of in known.pairs:
        if "STS-B" in of:
            r, df = of["STS-B"]
            error = math.sqrt(errors[0] ** 2 + errors[1] ** 2 - 2 * r * errors[0] * errors[1])
            told.append((norm if math.isinf(df) else t(df)).ppf(0.975) * error)
    assert len(told) == math.comb(len(known.encoders) - 1, 2) + 1  # of all-mpnet-base-v2 one pair alone is known
    assert known.smallest("STS-B", 80.17, 76.85) == pytest.approx((min(told), max(told)))


def test_a_range_of_one_s_own_takes_the_place_of_those_seen():
    entry = table("esimcse-coling2022-3")
    alike = differences(entry, facts().with_correlations(1.0, 1.0))
    seen = {(found.row, found.column, found.against): found for found in differences(entry)}
    assert {found.answer for found in alike if abs(found.difference) > 1} == {"real"}
    for found in differences(entry, facts().with_correlations(-1.0, 1.0)):
        wider = seen[found.row, found.column, found.against]
        assert (
            found.low <= wider.low < wider.high <= found.high * 1.5
        )  # few degrees of freedom ask for more than 1.96
    for low, high in ((0.9, 0.8), (-2, 0), (0, math.nan)):
        with pytest.raises(UserError, match="give the lower first"):
            facts().with_correlations(low, high)


@pytest.mark.parametrize(
    ("name", "other"),
    {
        # The table's own differences; a variant's own configuration; SimCSE of the backbone, here and elsewhere.
        "esimcse-coling2022-4/momentum-contrast": "esimcse-coling2022-4/unsup-simcse-bert-base",
        "mocose-acl2022-6/dim-256": "mocose-acl2022-6/dim-768",
        "mocose-acl2022-6/batch-128": "mocose-acl2022-6/batch-64",
        "esimcse-coling2022-3/esimcse-roberta-large": "esimcse-coling2022-3/unsup-simcse-roberta-large",
        "simcse-slides-sts/sbert-base-flow": "simcse-slides-sts/sup-simcse-bert-base",
        "simcse-slides-sts/is-bert-base": "simcse-slides-sts/unsup-simcse-bert-base-preprint",
        "angle-sts/angle-bert-base": "simcse-slides-sts/sup-simcse-bert-base",
        "cot-bert-sts/cot-bert-roberta-base": "esimcse-coling2022-3/unsup-simcse-roberta-base",
        "esimcse-coling2022-3/unsup-simcse-bert-base": None,
        "prompteol-sts/prompteol-llama-7b": None,
        "simcse-slides-sts/glove-avg": None,
    }.items(),
)
def test_a_row_is_held_against_the_baseline_that_a_reader_would_take(name, other):
    base = baseline(row(name))
    assert (None if base is None else base.name) == other


def test_each_row_stands_against_the_baseline_and_the_best_of_its_column():
    made = differences(table("mocose-acl2022-1"))
    found = {(d.row.partition("/")[2], d.column, d.against): d for d in made}
    mocose = found["mocose-bert-base", "Avg.", "baseline"]
    assert (mocose.score, mocose.other_score, mocose.difference) == (77.27, 76.25, pytest.approx(1.02))
    best = found["mocose-bert-base", "Avg.", "best"]
    assert (best.other, best.difference) == ("mocose-acl2022-1/mocose-bert-large", pytest.approx(77.27 - 79.13))
    assert ("mocose-bert-large", "Avg.", "best") not in found
    cells = [cell for row_ in rows_of(table("mocose-acl2022-1")) for cell in row_.cells if cell.column == "SICK-R"]
    highest = max(cell.value for cell in cells)
    assert {d.other_score for d in made if (d.column, d.against) == ("SICK-R", "best")} == {highest}


@pytest.mark.parametrize("name", tables())
def test_every_table_with_spearman_of_whole_sets_resolves_and_no_other(name):
    entry = tables()[name]
    if not differences(entry):
        with pytest.raises(UserError, match=f"^{name} has "):
            resolved(entry)
        return
    result = resolved(entry)
    assert len(result.frame) == len(result.differences) > 0
    assert (result.frame["low"] <= result.frame["high"]).all()
    assert result.notes()[0] in str(result)


def test_the_tables_of_sts_scores_have_differences_and_those_of_other_numbers_have_none():
    with_scores = {name for name, entry in tables().items() if differences(entry)}
    assert {"esimcse-coling2022-3", "mocose-acl2022-1", "simcse-slides-sts", "diffcse-sts"} <= with_scores
    assert with_scores.isdisjoint(
        {"mocose-acl2022-2", "esimcse-coling2022-1", "esimcse-coling2022-11", "hume-sts"}
    )


def test_what_is_no_spearman_of_all_pairs_is_not_resolved():
    assert [scored.task for scored in scored_cells(row("mteb-all-minilm-l6-v2/all-minilm-l6-v2"))] == [
        *("STS12", "STS13", "STS15", "STS16", "STS-B")  # SICK-R is of train, trial and test there
    ]
    assert not scored_cells(row("gaussian-dropout-simcse-cs224n-results/simcse"))  # Pearson
    assert not scored_cells(row("esimcse-arxiv-v1-1/sts12"))  # pairs by length
    assert [scored.task for scored in scored_cells(row("esimcse-coling2022-4/esimcse-bert-base"))] == ["STS-B:dev"]


def test_two_seeds_are_the_95_percent_quantile_of_the_differences_of_all_pairs_of_seeds():
    for encoder, task, column in (("bert-base", "Avg. STS", "Avg."), ("roberta-large", "STS-B:dev", "STS-B:dev")):
        scores = seeds(f"unsup-simcse-{encoder}")[column]
        gaps = sorted(abs(a - b) for a, b in combinations(scores, 2))
        assert len(gaps) == 1225
        of_row = row(f"esimcse-coling2022-3/esimcse-{encoder}")
        assert two_seeds(task, of_row) == pytest.approx(np.quantile(gaps, 0.95))
    assert math.isnan(two_seeds("Avg. STS", row("sup-promptbert-bert-base")))
    assert math.isnan(two_seeds("Avg. STS", row("prompteol-llama-7b")))


def output(*arguments):
    return CliRunner().invoke(app, ["published", "show", *arguments], env={"COLUMNS": "200"})


def test_show_prints_the_answers_and_what_they_assume():
    shown = output("esimcse-coling2022-3", "--resolution")
    (line, *_) = [line.split() for line in shown.stdout.splitlines() if line.startswith("esimcse-bert-base")]
    assert line[1:4] == ["78.27", "unsup-simcse-bert-base", "2.02"]
    assert line[-2:] == ["real", "2.28"]
    assert "Against the best row: all columns" in shown.stdout
    assert "those of any two of" in shown.stderr
    assert "SICK-R" in shown.stderr
    assert "may still be a lucky seed" in shown.stderr


def test_columns_stand_as_in_the_table_though_the_best_of_one_has_no_difference_to_itself():
    entry = table("diffcse-sts")
    order = [column.name for column in entry.columns]
    for each in resolved(entry).table():
        if "all columns" in each.caption:
            there = [name for name in map(str, each.frame.columns) if name in order]
            assert there == [name for name in order if name in there]
            assert len(there) > 2


def test_machines_get_each_difference_of_each_column():
    cells = json.loads(output("esimcse-coling2022-3", "--resolution", "--json").stdout)
    (cell,) = [
        cell
        for cell in cells
        if (cell["row"], cell["column"], cell["against"])
        == ("esimcse-coling2022-3/esimcse-bert-base", "SICK-R", "baseline")
    ]
    assert (cell["difference"], cell["answer"]) == (0.07, "not told")
    assert len(cells) == len(show_table("esimcse-coling2022-3", resolution=True).frame)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mocose-acl2022-2", "has no Spearman correlations on all pairs"),
        ("hume-sts", "has no Spearman correlations on all pairs"),
        ("mteb-all-minilm-l6-v2", "has STS scores of one row, and no SimCSE of its backbone"),
    ],
)
def test_a_table_without_such_scores_is_refused_in_one_sentence(name, why):
    with pytest.raises(UserError, match=f"^{name} {why}"):
        show_table(name, resolution=True)
    refused = output(name, "--resolution")
    assert (type(refused.exception), refused.stdout) == (UserError, "")
