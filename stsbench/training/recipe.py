"""The recipe: every choice of a training, validated."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pandas as pd
import yaml
from pydantic import Field, ValidationError, model_validator

from stsbench.base.errors import UserError
from stsbench.base.parsing import Draft, dump_yaml, first_mistake, key_paths, known_keys, read_draft, read_yaml
from stsbench.base.words import listed, suggestion
from stsbench.statistics.seeds import generator
from stsbench.training.heads import Head, Layers, NoHead
from stsbench.training.noise import Noises
from stsbench.training.parts import (
    Corpus,
    Negatives,
    Objective,
    Optimiser,
    RecipePart,
    Saving,
    Selection,
    Target,
)
from stsbench.training.tasks import CONTRASTIVE, LabelledTables, Phase, Task
from stsbench.training.views import TextView, Views

_ABOUT = ("extends", "variants")
"""Keys of a recipe's file that are not fields of the recipe."""

_FILES = ("path", "train", "dev", "model")

Pooling = Literal["cls_before_pooler", "avg", "max", "last"]
"""The poolings of sentence-transformers checkpoints."""


class Recipe(RecipePart):
    """Every choice of a training.

    Attributes:
        base: the checkpoint that training starts from, as `load` takes it.
        pooling: token vectors to sentence vector, in training and in evaluation.
        dropout: everywhere in the encoder; None for the checkpoint's own.
        head: after the pooling, on both sides.
        projector: after the head, on both sides; None for none.
        predictor: after both, on the queries' side only; None for none.
        precision: of forward and backward passes; weights, losses and optimiser are fp32.
        cuda_graphs: whether a GPU records passes by their shape and replays them; without effect on a CPU, with
            noise and with gradient caching.
        deterministic: whether a GPU uses the slower kernels that give the same bits each time; a CPU has no
            others.
        labelled: settings that the tables of all tasks share.
        tasks: heads that learn labels, by names of your choice.
        phases: trained one after the other; empty to train everything together.
        log_every: steps between two lines of the log.
    """

    name: str = Field(pattern=r"^[\w.-]+$")
    base: str
    corpus: Corpus = Corpus()
    views: Views = Views()
    pooling: Pooling
    dropout: float | None = Field(None, ge=0, lt=1)
    noise: Noises = Noises()
    head: Head = NoHead()
    projector: Layers | None = None
    predictor: Layers | None = None
    target: Target | None = None
    objective: Objective = Objective()
    negatives: Negatives = Negatives()
    labelled: LabelledTables = LabelledTables()
    tasks: dict[Annotated[str, Field(pattern=r"^[\w-]+$")], Task] = Field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    optimiser: Optimiser
    selection: Selection = Selection()
    saving: Saving = Saving()
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    cuda_graphs: bool = True
    deterministic: bool = True
    log_every: int = Field(10, ge=1)
    seed: int = 42

    @model_validator(mode="before")
    @classmethod
    def _queue_brings_a_target(cls, values: Any) -> Any:
        """Adds ESimCSE's target to a queue without one; removing a queue removes its target."""
        negatives = values.get("negatives") if isinstance(values, dict) else None
        if not isinstance(negatives, dict) or "queue" not in negatives:
            return values
        queue, target = negatives["queue"], values.get("target")
        if queue is None and isinstance(target, dict) and target.get("encodes", "queue") == "queue":
            return {**values, "target": None}
        return {**values, "target": {}} if queue and target is None else values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for mistake in _mistakes(self):
            raise ValueError(mistake)
        return self

    def seed_of(self, *names: str) -> int:
        """Returns the seed of the draws with some names; it follows from the recipe's seed."""
        return int(generator(self.seed, *names).integers(2**63))

    @property
    def keeps_test_pairs(self) -> bool:
        """Whether tasks may be trained on pairs of STS-B's dev and test sets."""
        return self.labelled.test_pairs == "kept" and any(part.sentences > 1 for part in self.tasks.values())

    @property
    def reads_text(self) -> bool:
        return any(isinstance(view, TextView) for view in (self.views.query, self.views.key))


def _mistakes_of_tasks(recipe: Recipe) -> Iterator[str]:
    from stsbench.scoring.tasks import canonical

    terms, untaken = [CONTRASTIVE, *recipe.tasks], set(recipe.tasks)
    if CONTRASTIVE in recipe.tasks:
        yield f"tasks.{CONTRASTIVE}: that name is the objective's on the corpus; choose another"
    for number, phase in enumerate(recipe.phases, 1):
        untaken -= {*phase.takes}
        for name in phase.takes:
            if name not in terms:
                yield f"phases: phase {number} takes {name!r}, expected {', '.join(terms)}"
    for name in sorted(untaken) if recipe.phases else ():
        yield f"phases: none takes {name!r}; name it in one, or remove tasks.{name}"
    if recipe.keeps_test_pairs and canonical(recipe.selection.task.partition(":")[0]) == "STS-B":
        yield "labelled.test_pairs is kept, so selection.task has to be another than STS-B, such as SICK-R:dev"


def _mistakes(recipe: Recipe) -> Iterator[str]:
    """Yields a sentence, with the keys to change, for each combination of parts that does not work."""
    yield from _mistakes_of_tasks(recipe)
    negatives, queue = recipe.negatives, recipe.negatives.queue
    objective, target = recipe.objective, recipe.target
    keys_by_target = target is not None and target.encodes == "keys"
    bare = negatives.in_batch and queue is None and negatives.hard is None
    width_of_keys = recipe.projector.output if recipe.projector is not None else None
    if target is not None and queue is None and not keys_by_target:
        yield "target.encodes is queue, and negatives.queue is missing"
    if not negatives.in_batch and queue is None:
        yield "negatives.in_batch is false, and negatives.queue is missing: there are no negatives"
    if not negatives.in_batch and negatives.hard is not None:
        yield "negatives.hard goes with negatives.in_batch: true"
    if objective.loss == "nt-xent" and (not bare or objective.similarity != "cosine"):
        yield "objective.loss nt-xent works only with cosines and in-batch negatives"
    for part in (*recipe.noise.query.parts, *recipe.noise.key.parts):
        padded_to, longest = getattr(part, "padded_to", None), recipe.corpus.max_length
        if padded_to not in {None, longest}:
            yield f"noise: padded_to {padded_to} is not corpus.max_length, {longest}: set one to the other"
    if recipe.noise.adversarial is not None and recipe.optimiser.gradient_cache:
        yield "noise.adversarial does not go with optimiser.gradient_cache: set one to null"
    if recipe.noise.masks == "shared" and (recipe.views.query != recipe.views.key or keys_by_target):
        yield "noise.masks shared needs the same views.query and views.key, and no target that encodes keys"
    if recipe.predictor is not None and recipe.predictor.output not in {None, width_of_keys}:
        yield "predictor.output is not the width of keys, projector.output: their vectors differ in width"
    if queue is not None and queue.size < recipe.optimiser.batch:
        yield f"negatives.queue.size {queue.size} is smaller than optimiser.batch {recipe.optimiser.batch}"
    if (negatives.hard is not None) != (recipe.corpus.columns == 3):
        yield "negatives.hard and corpus.columns: 3 go together: set both or neither"


def file_places(values: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the places of file names in a recipe as plain data: each mapping, and the key in it.

    They are the corpus, labelled tables, and the models of views.
    """
    parts: Iterable[Any] = values if isinstance(values, list | tuple) else ()
    if isinstance(values, dict):
        yield from ((values, key) for key in _FILES if isinstance(values.get(key), str))
        parts = values.values()
    for part in parts:
        yield from file_places(part)


def remarks_on_tests(recipe: Recipe) -> list[str]:
    """Returns a sentence for each way in which training reads test data."""
    sentences = []
    if recipe.corpus.of_tasks:
        sentences.append(
            "Trained on test sentences: the corpus is the evaluation tasks' own text, without its scores, so "
            "scores on those tasks are not comparable with those of other encoders."
        )
    if recipe.keeps_test_pairs:
        tasks = listed([name for name, part in recipe.tasks.items() if part.sentences > 1])
        sentences.append(
            "Trained on test pairs: pairs of STS-B's dev and test sets were kept in the labelled data of "
            f"{tasks}, so scores on STS-B, and on tasks that share pairs with it, are not results."
        )
    return sentences


@cache
def recipe_names() -> tuple[str, ...]:
    """Returns the recipes that come with stsbench, each followed by its variants.

    >>> {"esimcse-bert-base", "simcse-ablations:crop-10"} <= set(recipe_names())
    True
    """
    names = []
    for file in sorted(_folder().glob("*.yaml"), key=lambda path: path.stem):
        names += [file.stem, *(f"{file.stem}:{variant}" for variant in _variants(_written(file)))]
    return tuple(names)


def recipe_list() -> pd.DataFrame:
    summaries = [{"recipe": name, "what": _summary(name)} for name in recipe_names()]
    return pd.DataFrame(summaries)


def read_recipe(recipe: str | Path, *changes: Mapping[str, Any] | Sequence[str]) -> Recipe:
    """Reads and validates a recipe.

    A file may extend another (`extends: NAME`, a known recipe or a file in the same folder): a mapping changes key
    by key, unless it names another `kind`; any other value is replaced. The variant `NAME:VARIANT` is called
    `NAME-VARIANT`.

    Args:
        recipe: the name of a known recipe, or a YAML file; `:VARIANT` after it names a variant.
        changes: values by their key, such as `{"optimiser.batch": 32, "negatives.queue": None}`, or texts as after
            `--set`, such as `["optimiser.batch=32"]`.

    Raises:
        UserError: naming the file, the line and the key of the first mistake.

    >>> read_recipe("simcse-bert-base", {"optimiser.batch": 32}).optimiser.batch
    32
    """
    layers = _layers(str(recipe))
    for some in changes:
        if isinstance(some, Mapping):  # a mistake names the key, which is its place
            layers += [_change(key, value, "") for key, value in some.items()]
        else:
            layers += [_change(*read_change(text), f"--set {text}") for text in some]
    draft = Draft()
    for layer in layers:
        draft.values = _merged(draft.values, layer.values)
        kept = {keys: place for keys, place in draft.places.items() if keys not in layer.places}
        draft.places = kept | layer.places
    try:
        return Recipe.model_validate(draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, f"recipe {recipe}", known_keys(Recipe))) from error


def as_yaml(recipe: Recipe) -> str:
    return dump_yaml(recipe.model_dump(mode="json"))


def _summary(name: str) -> str:
    path, variant = _find(name)
    text = path.read_text(encoding="utf-8")
    if not variant:
        return text.partition("\n")[0].removeprefix("#").strip()
    comment = re.search(rf"^ +{re.escape(variant)}:.*?#(.*)$", text, re.MULTILINE)
    return comment[1].strip() if comment else ""


def _folder() -> Path:
    return Path(str(files("stsbench.training") / "recipes"))


def _find(name: str, beside: Path = Path()) -> tuple[Path, str]:
    """Returns the file of a recipe, and the variant that its name ends with; empty without one."""
    if name in recipe_names():
        stem, _, variant = name.partition(":")
        return _folder() / f"{stem}.yaml", variant
    if match := re.fullmatch(r"(.+\.ya?ml)(?::([^:]+))?", name):
        path = beside / Path(match[1]).expanduser()
        if not path.is_file():
            raise UserError(f"there is no recipe file {path}: check the path.")
        return path, match[2] or ""
    stem = name.partition(":")[0]
    choices = [known for known in recipe_names() if ":" not in known or known.startswith(f"{stem}:")]
    every = f"choose one of {', '.join(choices)}, or a .yaml file."
    raise UserError(f"unknown recipe {name!r}: {suggestion(name, recipe_names(), otherwise=every)}")


def _layers(name: str, beside: Path = Path(), above: tuple[tuple[Path, str], ...] = ()) -> list[Draft]:
    """Returns the layers of keys that make a recipe, in order: its parent's, its own, its variant's."""
    path, variant = place = _find(name, beside)
    if place in above:
        raise UserError(f"{path} extends itself, through {above[-1][0]}: remove one `extends`.")
    written = _written(path)
    variants = _variants(written)
    parent = written.values.get("extends")
    layers = [] if parent is None else _layers(str(parent), path.parent, (*above, place))
    values = {key: value for key, value in written.values.items() if key not in _ABOUT}
    layers.append(Draft(values, written.places))
    if variant:
        if variant not in variants:
            hint = suggestion(variant, tuple(variants), otherwise=f"it has {', '.join(variants) or 'none'}.")
            raise UserError(f"{path} has no variant {variant!r}: {hint}")
        names = [layer.values["name"] for layer in layers if "name" in layer.values]
        called = {"name": f"{names[-1]}-{variant}"} if names else {}
        places = {keys[2:]: at for keys, at in written.places.items() if keys[:2] == ("variants", variant)}
        layers.append(Draft(variants[variant] | called, places))
    return layers


def _written(path: Path) -> Draft:
    return read_draft(path, "a recipe", "`stsbench train demo --print`")


def _variants(written: Draft) -> dict[str, dict[str, Any]]:
    variants = written.values.get("variants") or {}
    if not isinstance(variants, dict):
        raise UserError(f"{written.places['variants',]}: variants: write a mapping from names to changes.")
    for name, changes in variants.items():
        line = written.places["variants", name]
        if not isinstance(changes, dict) or not re.fullmatch(r"[\w.-]+", name):
            raise UserError(f"{line}: variants.{name}: write a name without spaces, and a mapping of changes.")
        if unfit := {*_ABOUT, "name"} & changes.keys():
            raise UserError(f"{line}: variants.{name}: {min(unfit)!r} does not go into a variant; remove it.")
    return variants


def _merged(old: Any, new: Any) -> Any:
    """Returns old values with changes: mappings key by key, unless they name different kinds."""
    if (
        not isinstance(old, dict)
        or not isinstance(new, dict)
        or new.get("kind", old.get("kind")) != old.get("kind")
    ):
        return new
    return old | {key: _merged(old.get(key), value) for key, value in new.items()}


def read_change(override: str) -> tuple[str, Any]:
    """Returns the key and the value of a change, `optimiser.learning_rate=1e-5`."""
    name, equals, text = override.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise UserError(f"--set {override}: write key=value, such as optimiser.learning_rate=1e-5.")
    try:
        return name.strip(), read_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"--set {override}: the value is not valid YAML; put it in quotes.") from error


def _change(name: str, value: Any, place: str) -> Draft:
    for key in reversed(name.split(".")):
        value = {key: value}
    return Draft(value, dict.fromkeys(key_paths(value), place))
