"""Beyond the grid: a planted change of each kind is found and named, alone and with another, within a budget."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sts
from stsbench.data.tables import StsData
from stsbench.diagnosis import further as further_module
from stsbench.diagnosis.choices import PADDING, PRECISION, RAGGED, SENTENCE_RULES, TEMPLATE, Rules
from stsbench.diagnosis.further import Budget
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.usage import Way, changes_of, encoder_of, sentences_of, ways_to_read
from stsbench.encoders.template import RULES, read_template
from stsbench.encoders.use import ABOUT

Toys = Callable[..., StsData]

TOY = "toy"
PEARSON = sb.protocol(metric="pearson")
"""Of sixty pairs Spearman's correlation has so few values that settings meet by chance."""


@pytest.fixture(autouse=True)
def _few_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try few templates and rules: the passes are the same for all."""
    rules = ((), ("full_stop",), ("lower_case",), ("single_quotes",))
    monkeypatch.setattr("stsbench.diagnosis.usage.RULE_SETS", rules)
    for name, values in {"template": ("e5", "promptbert"), "precision": ("fp32", "bf16")}.items():
        _try(monkeypatch, name, values)


def _try(monkeypatch: pytest.MonkeyPatch, field: str, values: tuple[str, ...]) -> None:
    """Have a field of `Use` say that these values are tried."""
    monkeypatch.setitem(ABOUT, field, replace(ABOUT[field], tried=lambda: values))


@pytest.fixture
def data(toy_data: Toys) -> StsData:
    """Return pairs of which some sentences end in a full stop or a question mark, or have quotation marks."""
    made = toy_data(TOY, pairs=60)
    pairs = made.pairs.copy()
    ends = [".", "", "?", ' "so"', ""]
    pairs["sentence1"] = [f"{text}{ends[place % 5]}" for place, text in enumerate(pairs["sentence1"])]
    pairs["sentence2"] = [f"{text}{ends[place % 3]}" for place, text in enumerate(pairs["sentence2"])]
    return replace(made, pairs=pairs)


def score(encoder: Any, data: StsData, **choices: Any) -> str:
    """Return what a plain run scores, to six digits, as a claim."""
    record = sb.evaluate(
        encoder,
        data,
        protocol=sb.protocol(**{"metric": "pearson"} | choices),
        intervals=sb.Intervals(None),
        use_cache=False,
    )
    return f"{100 * (record.scores[0].value or 0):.6f}%"


def with_rules(data: StsData, *rules: str) -> StsData:
    pairs = data.pairs.copy()
    for side in ("sentence1", "sentence2"):
        for rule in rules:
            pairs[side] = pairs[side].map(RULES[rule])
    return replace(data, pairs=pairs)


def diagnosed(encoder: Any, claim: str, data: StsData, **options: Any) -> Diagnosis:
    same = {"protocol": PEARSON, "tolerance": 0.0005, "lengths": [], "use_cache": False}
    return sb.diagnose(encoder, claim, tasks=data, **same | options)


def changes(found: Diagnosis) -> dict[str, str]:
    assert found.explained, found.verdict
    assert found.answer is not found.search
    return found.answer.explanations[0].best.choices


def test_a_planted_template_is_found_and_named_with_the_option_that_gives_it(
    tiny_bert: Path, data: StsData
) -> None:
    claim = score(sb.load(tiny_bert, device="cpu", template="promptbert"), data)
    found = diagnosed(sb.load(tiny_bert, device="cpu"), claim, data)
    assert changes(found) == {"template": "promptbert"}
    assert "is what template `promptbert` gives" in found.verdict
    assert "with no template, your setting, the model gives" in found.verdict
    assert any("--template promptbert`" in remark for remark in found.remarks)


def test_the_template_that_somebody_left_out_is_found(tiny_bert: Path, data: StsData) -> None:
    claim = score(sb.load(tiny_bert, device="cpu"), data)
    mine = sb.load(tiny_bert, device="cpu", template="promptbert")
    # Without its template the vector is read elsewhere, too: a mask needs one.
    assert changes(diagnosed(mine, claim, data)) == {"template": "none"}


@pytest.mark.parametrize("rule", ["full_stop", "lower_case", "single_quotes"])
def test_a_planted_rule_for_the_sentence_is_found(
    hash_encode: Callable[..., Any], data: StsData, rule: str
) -> None:
    def reads_all(sentences: list[str]) -> Any:
        return hash_encode([text.replace(".", " .").replace('"', ' " ').replace("'", " ' ") for text in sentences])

    upper = replace(data, pairs=data.pairs.assign(sentence1=data.pairs["sentence1"].str.title()))
    found = diagnosed(reads_all, score(reads_all, with_rules(upper, rule)), upper)
    assert changes(found) == {"rules": rule}
    assert f"the rule `{rule}` for the sentence" in found.verdict


def test_a_planted_rule_of_a_template_is_found(tiny_bert: Path, data: StsData) -> None:
    bare = read_template("promptbert").model_copy(update={"rules": ()})
    claim = score(sb.load(tiny_bert, device="cpu", template=bare), data)
    found = diagnosed(sb.load(tiny_bert, device="cpu", template="promptbert"), claim, data)
    assert changes(found) == {"rules": "none"}
    assert found.further is not None
    assert found.further.sentences < 120, "those that the rule leaves alone are not encoded again"


def test_a_planted_layer_is_found(tiny_bert: Path, data: StsData) -> None:
    claim = score(sb.load(tiny_bert, device="cpu", pooling="avg@-2"), data)
    found = diagnosed(sb.load(tiny_bert, device="cpu"), claim, data)
    assert changes(found) == {"layer": "-2"}
    assert any("--pooling avg@-2`" in remark for remark in found.remarks)


def test_a_planted_precision_is_found(tiny_bert: Path, data: StsData) -> None:
    claim = score(sb.load(tiny_bert, device="cpu", precision="bf16"), data)
    found = diagnosed(sb.load(tiny_bert, device="cpu"), claim, data)
    assert changes(found) == {"precision": "bf16"}


def test_a_field_of_use_is_an_axis_by_its_metadata_alone(
    tiny_bert: Path, data: StsData, monkeypatch: pytest.MonkeyPatch
) -> None:
    _try(monkeypatch, "prompt", ("read this: ",))
    claim = score(sb.load(tiny_bert, device="cpu", prompt="read this: "), data)
    found = diagnosed(sb.load(tiny_bert, device="cpu"), claim, data)
    assert changes(found) == {"prompt": "read this: "}
    assert "is what prompt `read this: ` gives" in found.verdict
    assert any("--prompt 'read this: '`" in remark for remark in found.remarks)


def test_planted_padding_is_found(tiny_bert: Path, data: StsData) -> None:
    sts16 = replace(data, task="STS16")
    padded = sentences_of(sts16, Way.of({PADDING: RAGGED}), by_template=True)
    half = len(padded) // 2
    there = replace(sts16, pairs=sts16.pairs.assign(sentence1=padded[:half], sentence2=padded[half:]))
    mine = sb.load(tiny_bert, device="cpu", template="promptbert")
    found = diagnosed(mine, score(mine, there), sts16)
    assert changes(found) == {"padding": "ragged sub-sets"}
    assert "AnglE's repository pads" in " ".join(found.remarks)


def test_padding_fills_each_sub_set_to_its_longest_sentence(data: StsData) -> None:
    sts16 = replace(data, task="STS16")
    texts = sentences_of(sts16, Way.of({PADDING: RAGGED}), by_template=True)
    subsets = [*data.pairs["subset"], *data.pairs["subset"]]
    words = {
        name: {len(t.split(" ")) for t, s in zip(texts, subsets, strict=True) if s == name} for name in subsets
    }
    assert all(len(counts) == 1 for counts in words.values())
    assert [text.strip() for text in texts] == [*data.pairs["sentence1"], *data.pairs["sentence2"]]
    assert sentences_of(data, Way.of({PADDING: RAGGED}), by_template=True) == [text.rstrip() for text in texts]


TOGETHER = {
    "template and rules": (Way.of({TEMPLATE: "promptbert", SENTENCE_RULES: Rules()}), {}, {}),
    "template and precision": (Way.of({TEMPLATE: "promptbert", PRECISION: "bf16"}), {}, {}),
    "template and layer": (Way.of({TEMPLATE: "promptbert"}), {"layer": "-2"}, {}),
    "rules and aggregation": (Way.of({TEMPLATE: "promptbert"}), {}, {"aggregation": "mean"}),
    "layer and metric": (Way(), {"layer": "-2"}, {"metric": "spearman"}),
}


@pytest.mark.parametrize(
    "name", [next(iter(TOGETHER)), *(pytest.param(name, marks=pytest.mark.long) for name in [*TOGETHER][1:])]
)
def test_two_planted_changes_together_are_found_and_both_are_named(
    tiny_bert: Path, data: StsData, name: str
) -> None:
    way, layer, protocol = TOGETHER[name]
    mine = sb.load(tiny_bert, device="cpu")
    other = encoder_of(mine, way)
    if layer:
        pooling = f"{other.identity.use.pooling}@-2"
        other = other.with_use(pooling=pooling)
    expected = {
        change.choice.name: str(change.value)
        for of_pooling in changes_of(mine, other, way, [other.identity.use.pooling]).values()
        for change in of_pooling
    }
    expected = expected | layer | protocol
    found = diagnosed(mine, score(other, data, **protocol), data, further=2)
    assert changes(found) == expected
    assert len(found.answer.explanations[0].best.changes) == len(expected) == 2


def test_what_today_s_grid_explains_encodes_nothing_more(
    tiny_bert: Path, data: StsData, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        pytest.fail("searched further")

    monkeypatch.setattr("stsbench.diagnosis.diagnose.search_further", never)
    mine = sb.load(tiny_bert, device="cpu")
    for claim in (
        score(mine, data),
        score(mine, data, metric="pearson"),
        score(sb.load(tiny_bert, pooling="cls"), data),
    ):
        found = diagnosed(mine, claim, data)
        assert found.explained
        assert found.further is None


def test_the_budget_in_sentences_is_kept_and_what_it_left_out_is_told(tiny_bert: Path, data: StsData) -> None:
    found = diagnosed(sb.load(tiny_bert, device="cpu"), "99.99", data, most_sentences=30)
    assert found.further is not None
    assert found.further.sentences <= 30
    assert found.further.untried
    assert any("Beyond the grid" in note and "Not tried: " in note for note in found.notes)
    assert "settings beyond the grid were tried too, and none of them gives it. The nearest is" in found.verdict
    none = diagnosed(sb.load(tiny_bert, device="cpu"), "99.99", data, budget=0)
    assert none.further is not None
    assert none.further.sentences == 0


def test_of_several_numbers_the_smallest_task_goes_first_and_a_pass_that_misses_it_ends_there(
    hash_encode: Callable[..., Any], benchmark_folder: Path
) -> None:
    found = sb.diagnose(hash_encode, "STS16=99.99,STS12=98.98", data_dirs=[benchmark_folder], lengths=[])
    assert found.further is not None
    grid = found.grid
    sizes = {task: len(load_sts(task, data_dirs=[benchmark_folder]).pairs) for task in grid.scores}
    small = min(grid.scores, key=lambda task: sizes[task])
    assert grid.points
    assert all(set(point.scores) == {small} for point in grid.points)
    assert all(np.isfinite(point.scores[small]).all() for point in grid.points)


def test_passes_with_fewer_changes_go_first_and_a_small_gap_asks_for_the_precision(tiny_bert: Path) -> None:
    mine = sb.load(tiny_bert, device="cpu")
    ways = ways_to_read(mine, ["STS16"], likely=["promptbert"], gap=3.0).ways
    assert [way.count for way in ways] == sorted(way.count for way in ways)
    assert len(set(ways)) == len(ways)
    singles = [str(way) for way in ways if way.count <= 1]
    assert singles[0] == "padded sentences"
    assert singles.index("template promptbert") < singles.index("template e5")
    assert singles[-1] == "bf16"
    assert str(ways_to_read(mine, [], gap=0.1).ways[0]) == "bf16"


def test_the_whole_diagnosis_is_told_in_every_form(tiny_bert: Path, data: StsData) -> None:
    claim = score(sb.load(tiny_bert, device="cpu", pooling="avg@-2"), data)
    found = diagnosed(sb.load(tiny_bert, device="cpu"), claim, data)
    plain = found.to_dict()
    assert plain["explanations"][0]["changes"] == {"layer": "-2"}
    assert plain["further"]["tried"][-1] == "layers"
    assert "layer -2" in set(found.table()[0].frame["setting"])
    frame = found.frame
    row = frame[(frame["variation"] == "layer -2") & (frame["metric"] == "pearson") & (frame["changes"] == 1)]
    assert float(row["score"].iloc[0]) == pytest.approx(float(claim.rstrip("%")), abs=1e-3)
    assert np.isfinite(frame["score"]).all()
    assert found.plot() is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"changes": 3}, "3 changes beyond the grid: give 0"),
        ({"seconds": -1.0}, "a budget of -1 seconds"),
        ({"seconds": float("nan")}, "a budget of nan seconds"),
        ({"sentences": -1}, "a budget of -1 sentences"),
    ],
)
def test_what_is_no_budget_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Budget(**options)


def test_a_pass_that_the_checkpoint_cannot_make_is_told_and_the_others_are_made(
    tiny_bert: Path, data: StsData, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = further_module.encoder_of

    def refuses(encoder: Any, way: Way) -> Any:
        if way[PRECISION] == "bf16":
            raise UserError("bf16 does not fit in memory.")
        return make(encoder, way)

    monkeypatch.setattr(further_module, "encoder_of", refuses)
    found = diagnosed(sb.load(tiny_bert, device="cpu"), "99.99", data)
    assert found.further is not None
    assert "bf16 (bf16 does not fit in memory)" in found.further.untried
    assert "layers" in found.further.tried


def test_mteb_s_second_sts_b_is_a_split_of_the_first_and_needs_no_more_vectors(
    hash_encode: Callable[..., Any], benchmark_folder: Path
) -> None:
    path = benchmark_folder / "downstream/STS/STSBenchmark/sts-test.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, *lines[:4]]) + "\n", encoding="utf-8")
    record = sb.evaluate(
        hash_encode, "STS-B@senteval-v2", intervals=sb.Intervals(None), data_dirs=[benchmark_folder]
    )
    claim = f"STS-B={100 * (record.scores[0].value or 0):.6f}%"
    found = sb.diagnose(hash_encode, claim, data_dirs=[benchmark_folder], tolerance=0.0005, further=0)
    assert found.search.explanations[0].best.choices == {"STS-B split": "test@senteval-v2"}
    assert "STS-B's test split without repeated pairs" in found.verdict
    assert any("--tasks STS-B:test@senteval-v2`" in remark for remark in found.remarks)
