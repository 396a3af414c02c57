"""How a model is used is one value: an option is one field, and all that needs to know of it asks the field."""

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import typer

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import ABOUT, Loading, Use, names, own_use, shown, use_signature
from stsbench.records.labels import model_labels
from stsbench.records.parts import ModelPart
from stsbench.records.signature import Signature
from stsbench.scoring.kinds import as_task
from stsbench.scoring.run import run_name
from stsbench.scoring.settings import Protocol, Settings

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


def used(name: str) -> Identity:
    return replace(IDENTITY, use=replace(IDENTITY.use, **{name: OTHER[name]}))


def test_load_takes_every_field_with_its_default_and_describes_it() -> None:
    parameters = list(inspect.signature(sb.load).parameters.values())[1:]
    assert {each.name: (each.default, each.annotation) for each in parameters} == {
        each.name: (each.default, each.type) for each in fields(Use)
    }
    assert sorted(ABOUT) == sorted(OTHER)
    assert all(f"        {name}: " in (sb.load.__doc__ or "") for name in ABOUT)
    with pytest.raises(TypeError, match="unexpected keyword argument 'poling'"):
        sb.load("minilm", poling="cls")


def test_no_other_verb_takes_a_field() -> None:
    verbs = {name: verb for name in sb.__all__ if inspect.isfunction(verb := getattr(sb, name)) and name != "load"}
    # Options of the same name: what a whitening keeps, and where a training runs.
    others = {"fit": {"dimensions"}} | {name: {"device"} for name in ("train", "sweep", "reproduce")}
    taken = {name: {*inspect.signature(verb).parameters} & {*ABOUT} for name, verb in verbs.items()}
    assert {name: found for name, found in taken.items() if found} == others
    assert len(inspect.signature(sb.evaluate).parameters) <= 12


def test_a_default_is_neither_in_a_signature_nor_in_the_cache_key() -> None:
    assert use_signature(IDENTITY.use) == "avg|fp32"
    assert IDENTITY.use.key() == {"pooling": "avg", "prompt": "", "device": "cpu"}


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


def test_what_an_encoder_obeys_is_the_part_that_changes_nothing_afterwards() -> None:
    assert tuple(each.name for each in fields(Loading)) == names("encoding", "place", "nothing")


def test_options_go_to_what_is_loaded_and_not_to_what_is_loaded_already(
    tiny: Callable[..., Any], hash_encode: Callable[..., Any], tmp_path: Any
) -> None:
    folder, asked = str(tiny("bert", "plain")), {"pooling": "avg", "dimensions": 8, "whiten": 4}
    encoder = sb.load(folder, **asked)
    assert sb.load(encoder) is encoder
    with pytest.raises(sb.UserError, match=r"^--pooling needs a model to load, but .* is loaded already"):
        sb.load(encoder, pooling="avg")
    record = sb.evaluate(encoder, "sample", out=tmp_path / "run")
    assert record.model.use == encoder.identity.use
    of_record, of_model, plain = (
        sb.geometry(subject, task="sample").frame for subject in (record, encoder, sb.load(folder, pooling="avg"))
    )
    for number in ("alignment", "uniformity", "mean_cosine"):
        assert of_record[number].tolist() == of_model[number].tolist()
    assert plain["uniformity"].tolist() != of_model["uniformity"].tolist()
    rows = embed(encoder, ["one man", "two dogs run", "a red boat", "she reads", "they go"])
    assert rows.vectors["avg"].shape == (5, 4)
