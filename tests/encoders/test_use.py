"""How a model is used is one value: an option is one field, and all that needs to know of it asks the field."""

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import typer

import stsbench as sb
from stsbench.analysis import analyses
from stsbench.data.tables import StsData
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import ABOUT, Loading, Use, UseOptions, names, own_use, shown, takes_use
from stsbench.records.labels import model_labels
from stsbench.records.parts import ModelPart
from stsbench.records.signature import Signature
from stsbench.scoring.kinds import as_task
from stsbench.scoring.run import run_name
from stsbench.scoring.settings import Protocol, Settings
from stsbench.sweeps.experiment import PostprocessingChoice
from stsbench.sweeps.jobs import _LOADING

OTHER: dict[str, Any] = {
    "pooling": "cls",
    "max_length": 9,
    "prompt": "query: ",
    "prompt_name": "sts",
    "prompts": ("q: ", "p, "),
    "template": "mine#1a2b",
    "backend": "openvino",
    "precision": "bf16",
    "normalize": True,
    "dimensions": 8,
    "whiten": 4,
    "revision": "v2",
    "device": "cuda",
    "trust_remote_code": True,
    "attention": "eager",
    "attention_mask": "causal",
}
IDENTITY = Identity("me/mine", "transformer", own_use("avg"), weights_sha256="a" * 64)
each_field = pytest.mark.parametrize("name", ABOUT)
VERBS = [sb.load, sb.evaluate, sb.diagnose, sb.explain, *(command.verb for command in analyses().values())]


def used(name: str) -> Identity:
    return replace(IDENTITY, use=replace(IDENTITY.use, **{name: OTHER[name]}))


def test_the_options_that_verbs_take_are_the_fields() -> None:
    hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in UseOptions.__annotations__.items()}
    assert hints == {each.name: each.type for each in fields(Use)}
    assert sorted(hints) == sorted(OTHER)


def test_a_default_is_neither_in_a_signature_nor_in_the_cache_key() -> None:
    assert IDENTITY.use.signature() == "avg|fp32"
    assert IDENTITY.use.key() == {"pooling": "avg", "prompt": "", "device": "cpu"}


@each_field
def test_a_field_is_an_option_of_every_verb_that_takes_a_model(name: str) -> None:
    for verb in VERBS:
        parameter = inspect.signature(verb).parameters[name]
        assert parameter.default == getattr(Use(), name)
        assert f"        {name}: " in (verb.__doc__ or ""), verb


@each_field
def test_a_field_is_an_option_on_the_command_line_of_run(name: str) -> None:
    from stsbench.scoring.command import run

    annotation = inspect.signature(run).parameters[name].annotation
    (option,) = annotation.__metadata__
    assert isinstance(option, typer.models.OptionInfo)
    assert option.help == ABOUT[name].help


@each_field
def test_a_field_that_changes_vectors_is_in_the_key_of_the_cache_and_no_other_is(name: str) -> None:
    assert (used(name).key() != IDENTITY.key()) == (ABOUT[name].changes in {"encoding", "place"})


@each_field
def test_a_field_that_changes_vectors_tells_two_records_apart(name: str) -> None:
    models = [ModelPart(**vars(identity)) for identity in (IDENTITY, used(name))]
    assert models[0] != models[1]
    _, label = model_labels(models)
    assert (shown(name, OTHER[name]) in label) == (ABOUT[name].changes != "nothing")


@each_field
def test_a_field_of_a_signature_reads_back_and_what_changes_vectors_without_being_one_is_of_the_place(
    name: str,
) -> None:
    what = ("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91")
    plain, other = (Signature(*what, identity.use, version="1") for identity in (IDENTITY, used(name)))
    assert Signature.parse(str(other)) == other
    assert (str(other) == str(plain)) == (ABOUT[name].changes in {"nothing", "place"})


@each_field
def test_a_field_that_has_a_part_in_a_runs_name_is_in_it(name: str, toy_data: Callable[..., StsData]) -> None:
    identity = used(name)
    if name == "template":  # A name has that of a template, which is read when a model is loaded.
        return
    task = as_task(toy_data(), Protocol())
    both = [run_name(each, [task], Settings()) for each in (IDENTITY, identity)]
    is_named = ABOUT[name].named or name == "backend"  # a part of the precision
    assert (both[0] != both[1]) == is_named


@each_field
def test_a_field_may_be_varied_by_a_sweep_unless_it_is_a_matter_of_the_place(name: str) -> None:
    allowed = {*_LOADING, *PostprocessingChoice.model_fields}
    assert (name in allowed) != (ABOUT[name].changes == "place")


def test_what_an_encoder_obeys_is_the_part_that_changes_nothing_afterwards() -> None:
    assert tuple(each.name for each in fields(Loading)) == names("encoding", "place", "nothing")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_a_mistyped_option_is_refused_with_the_nearest_name(verb: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=rf"{verb.__name__}\(\) has no option 'poling': did you mean pooling"):
        verb("minilm", poling="cls")


def test_the_docstring_of_a_verb_tells_each_option_behind_the_line_of_use() -> None:
    @takes_use
    def verb(model: str, **use: Any) -> None:
        """Do it.

        Args:
            model: a name.
            **use: how it is used.
        """

    assert "**use: how it is used.\n        pooling: one of" in (verb.__doc__ or "")


def test_a_model_is_evaluated_as_it_would_be_loaded_and_options_of_loading_are_refused_of_one_that_is(
    tiny: Callable[..., Any],
) -> None:
    folder = tiny("bert", "plain")
    asked: dict[str, Any] = {"pooling": "cls", "max_length": 9, "dimensions": 8, "normalize": True}
    by_name = sb.evaluate(str(folder), "sample", **asked)
    loaded = sb.load(str(folder), **asked)
    assert by_name.model.use == loaded.identity.use
    for other in (
        sb.evaluate(loaded, "sample"),
        sb.evaluate(sb.load(str(folder), pooling="cls", max_length=9), "sample", dimensions=8, normalize=True),
    ):
        assert other.signatures == by_name.signatures
        assert other.scores == by_name.scores
    with pytest.raises(sb.UserError, match="--pooling needs a model to load, but this one is"):
        sb.evaluate(loaded, "sample", pooling="avg")


def test_an_analysis_processes_the_vectors_of_a_model_as_of_its_record(
    tiny: Callable[..., Any], tmp_path: Any
) -> None:
    folder, asked = str(tiny("bert", "plain")), {"pooling": "avg", "dimensions": 8, "whiten": 4}
    record = sb.evaluate(folder, "sample", out=tmp_path / "run", **asked)
    of_record, of_model = (
        sb.geometry(record, task="sample"),
        sb.geometry(folder, task="sample", **asked),
    )
    for number in ("alignment", "uniformity", "mean_cosine"):
        assert of_record.frame[number].tolist() == of_model.frame[number].tolist()
    plain = sb.geometry(folder, task="sample", pooling="avg")
    assert plain.frame["uniformity"].tolist() != of_model.frame["uniformity"].tolist()
    rows = embed(sb.load(folder, **asked), ["one man", "two dogs run", "a red boat", "she reads", "they go"])
    assert rows.vectors["avg"].shape == (5, 4)
