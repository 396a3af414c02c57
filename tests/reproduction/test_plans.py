"""The plans of the papers' tables: complete, true to the print, and valid down to every recipe and checkpoint."""

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest

from stsbench.analysis import ANALYSES
from stsbench.base.errors import UserError
from stsbench.published.catalogue import checkpoint_of_system, exhibits, papers, tables
from stsbench.records.labels import distinct_labels
from stsbench.reproduction.layout import OF_HEADS, experiment_of, layout, measure_of, tasks_of
from stsbench.reproduction.reproduce import reproductions
from stsbench.reproduction.table_plan import RELATIONS, SCALES, TablePlan, plan_of, plans, scales
from stsbench.scoring.settings import Protocol
from stsbench.scoring.tasks import parse_tasks
from stsbench.sweeps.jobs import jobs_of
from stsbench.training import recipe as recipe_module
from stsbench.training.recipe import read_recipe

TEXTS = Path(__file__).parents[2].parent / "shared" / "papers"

NAMES = {name: plan for plan in plans().values() for name in plan.makes}
MADE = [(plan.makes[0], scale) for plan in plans().values() if not plan.cannot for scale in ("laptop", "paper")]
MADE += [(name, "demo") for name in ("esimcse-coling2022-7", "mocose-acl2022-8", "simcse-slides-pooling-and-mlm")]


@pytest.fixture(scope="module", autouse=True)
def _recipes_are_read_once() -> Iterator[None]:
    """Parse each recipe's file once: hundreds of readings would take most of the time of these tests."""
    read = cache(recipe_module._written)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe_module, "_written", lambda path: deepcopy(read(path)))
        yield


def test_every_table_and_figure_has_one_plan_and_every_plan_makes_some() -> None:
    of_papers = [name for name, entry in exhibits().items() if not entry.section and entry.paper != "mteb"]
    assert Counter(name for plan in plans().values() for name in plan.makes) == dict.fromkeys(of_papers, 1)
    with pytest.raises(UserError, match="there is no plan for diffcse-sts"):
        plan_of("diffcse-sts")


@pytest.mark.parametrize("name", [name for name, plan in NAMES.items() if not plan.cannot and name in tables()])
def test_a_plan_has_every_row_and_column_of_its_printed_table(name: str) -> None:
    plan, table = NAMES[name], tables()[name]
    assert set(plan.rows_of(name)) >= {row.name for row in table.rows}
    filled = {column for column, measure in plan.columns_of(name).items()}
    of_differences = {
        column.name for column in table.columns if column.setting.over(table.setting).task == "delta"
    }
    assert {column.name for column in table.columns} - of_differences <= filled


@pytest.mark.parametrize("plan", plans().values(), ids=lambda plan: plan.name)
def test_plans_are_consistent(plan: TablePlan) -> None:
    assert bool(plan.rows) != bool(plan.cannot)
    named = [row for claim in plan.claims for row in claim.rows]
    named += [row for rows in plan.made_at.values() for row in rows]
    assert {row.partition(", ")[0] for row in named} <= set(plan.rows)
    for claim in plan.claims:
        assert sum(bool(getattr(claim, relation)) for relation in RELATIONS) == 1
        assert set(claim.lines) <= set(plan.makes)
        assert bool(claim.by) or not claim.alike
        assert len(claim.above) != 1
        assert len(claim.smaller_gap) in {0, 2}


def test_no_row_of_a_plan_is_in_none_of_its_tables() -> None:
    for plan in plans().values():
        if not plan.cannot and all(name in tables() and tables()[name].rows for name in plan.makes):
            printed = {row.name for name in plan.makes for row in tables()[name].rows}
            assert set(plan.rows) == printed, plan.name


@pytest.mark.parametrize(("name", "scale"), MADE)
def test_a_plan_is_an_experiment_whose_recipes_checkpoints_and_tasks_exist(name: str, scale: str) -> None:
    plan = NAMES[name]
    what = layout(plan, name, scale)
    if not what.made:
        # Said in a sentence, and never at all scales.
        with pytest.raises(UserError, match=f"{name} cannot be made at the scale {scale}: "):
            experiment_of(plan, name, scale)
        assert layout(plan, name, "paper").made
        return
    experiment = experiment_of(plan, name, scale, corpus="sample")
    jobs = jobs_of(experiment, is_read=False)
    for recipe in (job.recipe for job in jobs if job.recipe is not None and job.recipe["corpus"]["rows"]):
        steps = recipe["corpus"]["rows"] // recipe["optimiser"]["batch"] * recipe["optimiser"]["epochs"]
        assert steps >= 2, recipe["name"]
    trained = sum(made.is_trained for made in what.made)
    assert len(jobs) == trained * len(scales()[scale].seeds) + len(what.made) - trained
    if (tasks := tasks_of(plan, name, scale)) is not None:
        assert parse_tasks(tasks, Protocol())
    if plan.analysis:
        assert plan.analysis in ANALYSES
    assert plan.headline_of(name) in plan.columns_of(name)
    assert plan.analysis or measure_of(plan, name, plan.headline_of(name), tasks_of(plan, name, scale))
    known = set(plan.rows_of(name))
    assert {made.row for made in what.made} <= known
    assert set(what.shares.values()) <= {made.row for made in what.made}
    assert all(len(why) > 10 for why in what.missing.values())


def test_a_job_knows_every_measure_that_a_plan_asks_for_by_its_name() -> None:
    of_training = {"", "dev", "dev last"}
    for name, plan in NAMES.items():
        if plan.cannot or plan.analysis:
            continue
        heads = {made.changes["recipe"] for made in layout(plan, name, "laptop").made} if plan.labelled else set()
        trained = {
            f"{OF_HEADS}{task} {part.measure}"
            for recipe in heads
            for task, part in read_recipe(recipe).tasks.items()
        }
        assert bool(trained) == plan.labelled
        for scale in SCALES:
            tasks = tasks_of(plan, name, scale)
            assert tasks is not None
            # What a record calls the scores that it has.
            labels = distinct_labels(parse_tasks(tasks, Protocol()))
            known = {*labels, "Avg.", "Avg. transfer", *of_training, *trained}
            asked = {measure_of(plan, name, column, tasks) for column in plan.columns_of(name)}
            assert asked <= known, (name, scale)
            assert measure_of(plan, name, plan.headline_of(name), tasks), (name, scale)
    plan = NAMES["esimcse-coling2022-9"]
    assert measure_of(plan, "esimcse-coling2022-9", "STS-B", "STS-B:dev") == "STS-B:dev"


def test_a_checkpoint_that_a_plan_names_is_known_and_on_the_hub() -> None:
    for plan in plans().values():
        for row in plan.rows.values():
            if row.checkpoint:
                known = checkpoint_of_system(row.checkpoint)
                assert known is not None, row.checkpoint
                assert known.hub, row.checkpoint


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the papers' texts are not in ../shared/papers")
def test_a_claim_s_line_is_in_the_paper_and_its_words_are_near() -> None:
    of_collapse = ("collaps", "hurt", "decrease", "unstable", "급격", "detrimental")
    for plan in plans().values():
        for claim in plan.claims:
            for name, line in claim.lines.items():
                lines = (TEXTS / papers()[exhibits()[name].paper].file).read_text(encoding="utf-8").splitlines()
                assert 0 < line <= len(lines), claim.name
                near = " ".join(lines[max(0, line - 6) : line + 6]).casefold()
                assert near.strip(), (plan.name, claim.name)
                if claim.above and claim.by:
                    assert any(word in near for word in of_collapse), (plan.name, claim.name)


def test_the_list_says_of_every_exhibit_what_it_takes_at_each_scale_or_why_it_cannot_be_made() -> None:
    frame = reproductions().frame.set_index("table")
    assert set(frame.index) == set(NAMES)
    for name, row in frame.iterrows():
        if row["can be made"]:
            assert all(row[scale] for scale in SCALES), name
            does = ("training", "checkpoint")
            assert any(word in row[scale] for scale in SCALES for word in does), name
        else:
            assert len(row["why not"]) > 20, name
    assert frame.loc["esimcse-coling2022-9", "paper"] == "trainings: 8"
    assert frame.loc["esimcse-coling2022-8", "paper"] == "checkpoints: 2, analysis repetition-bias"
    assert frame.loc["esimcse-coling2022-3", "paper"].startswith("checkpoints: 10")
    shown = str(reproductions())
    assert "esimcse-coling2022-9" in shown
    assert "a diagram of the method" in shown


def test_the_traceable_distance_of_a_row_is_what_its_recipe_says() -> None:
    for name in ("mocose-acl2022-figure-2", "mocose-acl2022-figure-3", "mocose-acl2022-figure-12"):
        plan = NAMES[name]
        for made in layout(plan, name, "paper").made:
            decay = made.changes["target.decay"]
            queue, batch = made.changes["negatives.queue"]["size"], made.changes["optimiser.batch"]
            assert plan.rows[made.row].at == pytest.approx(1 / (1 - decay) + queue / batch, abs=0.005)


def test_settings_corpus_and_seeds_of_a_person_reach_every_training() -> None:
    plan = plan_of("esimcse-coling2022-4")
    experiment = experiment_of(
        plan, "esimcse-coling2022-4", "demo", corpus="mine.txt", seeds=(7,), settings={"optimiser.batch": 16}
    )
    rows = experiment.axes["row"]
    assert isinstance(rows, dict)
    assert {row["optimiser.batch"] for row in rows.values()} == {16}
    assert {row["corpus"] for row in rows.values()} == {"mine.txt"}
    assert experiment.seeds == (7,)
