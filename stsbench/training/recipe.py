"""The recipe: every choice of a training, validated."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
import yaml
from pydantic import Field, ValidationError, model_validator

from stsbench.base.errors import UserError
from stsbench.base.parsing import Draft, Keys, first_mistake, key_paths, known_keys, read_draft
from stsbench.base.words import listed, suggestion
from stsbench.statistics.seeds import generator
from stsbench.training.heads import Head, Layers, NoHead
from stsbench.training.noise import Noises
from stsbench.training.parts import (
    Corpus,
    CosineDecay,
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
        """Add ESimCSE's target to a queue without one; removing a queue removes its target."""
        negatives = values.get("negatives") if isinstance(values, dict) else None
        if not isinstance(negatives, dict) or "queue" not in negatives:
            return values
        queue, target = negatives["queue"], values.get("target")
        if queue is None and isinstance(target, dict) and target.get("encodes", "queue") == "queue":
            return {**values, "target": None}
        return {**values, "target": {}} if queue and target is None else values

    @model_validator(mode="after")
    def _phases_take_the_tasks(self) -> Self:
        parts = [CONTRASTIVE, *self.tasks]
        if CONTRASTIVE in self.tasks:
            raise ValueError(f"tasks.{CONTRASTIVE}: that name is the objective's on the corpus; choose another")
        for number, phase in enumerate(self.phases, 1):
            unknown = [name for name in phase.takes if name not in parts]
            if unknown:
                known = ", ".join(parts)
                raise ValueError(f"phases: phase {number} takes {unknown[0]!r}, which is none of {known}")
        untaken = [name for name in self.tasks if not any(name in phase.takes for phase in self.phases)]
        if self.phases and untaken:
            raise ValueError(f"phases: none takes {untaken[0]!r}; name it in one, or remove tasks.{untaken[0]}")
        return self

    @model_validator(mode="after")
    def _not_selected_on_what_it_was_trained_on(self) -> Self:
        from stsbench.scoring.tasks import canonical

        if self.keeps_test_pairs and canonical(self.selection.task.partition(":")[0]) == "STS-B":
            raise ValueError(
                f"labelled.test_pairs is kept, so training reads pairs of selection.task {self.selection.task}: "
                "use another selection.task, such as SICK-R:dev"
            )
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        queue = self.negatives.queue
        keys_by_target = self.target is not None and self.target.encodes == "keys"
        if self.target is not None and queue is None and not keys_by_target:
            raise ValueError("target.encodes is queue, and negatives.queue is missing")
        if not self.negatives.in_batch and queue is None:
            raise ValueError("negatives.in_batch is false, and negatives.queue is missing: there are no negatives")
        if not self.negatives.in_batch and self.negatives.hard is not None:
            raise ValueError("negatives.hard goes with negatives.in_batch: true")
        bare = self.negatives.in_batch and queue is None and self.negatives.hard is None
        if self.objective.loss == "nt-xent" and (not bare or self.objective.similarity != "cosine"):
            raise ValueError("objective.loss nt-xent goes with cosines and in-batch negatives alone")
        parts = (*self.noise.query.parts, *self.noise.key.parts)
        padded = [length for part in parts if (length := getattr(part, "padded_to", None)) is not None]
        if unlike := [length for length in padded if length != self.corpus.max_length]:
            raise ValueError(
                f"noise: padded_to {unlike[0]} is not corpus.max_length, {self.corpus.max_length}: set one to the "
                "other"
            )
        if self.noise.adversarial is not None and self.optimiser.gradient_cache:
            raise ValueError("noise.adversarial does not go with optimiser.gradient_cache: set one to null")
        if self.noise.masks == "shared" and (self.views.query != self.views.key or keys_by_target):
            raise ValueError(
                "noise.masks shared needs the same tokens through the same encoder on both sides: the same "
                "views.query and views.key, and a target that does not encode keys"
            )
        return self

    @model_validator(mode="after")
    def _heads_fit_together(self) -> Self:
        if self.projector is not None and self.predictor is not None:
            inner = self.projector.output
            if (self.predictor.output or inner) != inner:
                raise ValueError("predictor.output is not projector.output: queries and keys would not compare")
        elif self.predictor is not None and self.predictor.output is not None:
            raise ValueError("predictor.output is not the width of keys: queries and keys would not compare")
        return self

    @model_validator(mode="after")
    def _batches_fit_together(self) -> Self:
        queue = self.negatives.queue
        if queue is not None and queue.size < self.optimiser.batch:
            raise ValueError(
                f"negatives.queue.size {queue.size} is smaller than optimiser.batch {self.optimiser.batch}: a "
                "batch would not fit in it"
            )
        if (self.negatives.hard is not None) != (self.corpus.columns == 3):
            raise ValueError("negatives.hard and corpus.columns: 3 go together: set both or neither")
        return self

    def with_paths(
        self, corpus: str | None, of_view: Callable[[str], str], of_table: Callable[[str, str], str]
    ) -> Self:
        changes = {
            "corpus": self.corpus.model_copy(update={"path": corpus}),
            "views": self.views.with_paths(of_view),
            "tasks": {name: part.with_paths(partial(of_table, name)) for name, part in self.tasks.items()},
        }
        return self.model_copy(update=changes)

    def seed_of(self, *names: str) -> int:
        """Return the seed of the draws with some names; it follows from the recipe's seed."""
        return int(generator(self.seed, *names).integers(2**63))

    @property
    def keeps_test_pairs(self) -> bool:
        """Whether tasks may be trained on pairs of STS-B's dev and test sets."""
        return self.labelled.test_pairs == "kept" and any(part.sentences > 1 for part in self.tasks.values())

    @property
    def reads_text(self) -> bool:
        return any(isinstance(view, TextView) for view in (self.views.query, self.views.key))


def remarks_on_tests(recipe: Recipe) -> list[str]:
    """Return a sentence for each way in which training reads test data."""
    sentences = []
    if recipe.corpus.of_tasks:
        sentences.append(
            "Trained on test sentences: the corpus is the evaluation tasks' own text, without its scores, so "
            "scores on those tasks do not compare with those of other encoders."
        )
    if recipe.keeps_test_pairs:
        tasks = listed([name for name, part in recipe.tasks.items() if part.sentences > 1])
        sentences.append(
            "Trained on test pairs: pairs of STS-B's dev and test sets were kept in the labelled data of "
            f"{tasks}, so scores on STS-B, and on tasks that share pairs with it, are no results."
        )
    return sentences


def traceable_sentence(recipe: Recipe) -> str | None:
    """Return MoCoSE's maximum traceable distance, at the lowest and the highest decay; None without a queue.

    d = 1 / (1 - eta) + queue / batch (section 5.7): the age in steps of a loss's oldest vectors.
    """
    queue, target = recipe.negatives.queue, recipe.target
    if queue is None or target is None:
        return None
    decays = (target.decay.start, target.decay.end) if isinstance(target.decay, CosineDecay) else (target.decay,)
    distances = [
        (math.inf if eta == 1 else 1 / (1 - eta)) + queue.size / recipe.optimiser.batch for eta in sorted(decays)
    ]
    steps = " to ".join(dict.fromkeys(f"{distance:.2f}" for distance in distances))
    return f"maximum traceable distance {steps} steps (1 / (1 - decay) + queue / batch; MoCoSE, section 5.7)"


@dataclass
class _Draft(Draft):
    def change(self, values: dict[str, Any], places: dict[Keys, str]) -> None:
        self.values = _merge(self.values, values)
        self.places = {path: place for path, place in self.places.items() if path not in places} | places


class _Place(NamedTuple):
    """The place of a recipe: its file, and the name of a variant; None for the recipe itself."""

    file: Path
    variant: str | None = None


@cache
def recipe_names() -> tuple[str, ...]:
    """Return the recipes that come with stsbench, each followed by its variants.

    >>> {"esimcse-bert-base", "simcse-ablations:crop-10"} <= set(recipe_names())
    True
    """
    names = []
    for file in sorted(_folder().glob("*.yaml"), key=lambda path: path.stem):
        names += [file.stem, *(f"{file.stem}:{variant}" for variant in _variants(_written(file)))]
    return tuple(names)


def recipe_list() -> pd.DataFrame:
    summaries = [{"recipe": name, "what": _summary(_find(name))} for name in recipe_names()]
    return pd.DataFrame(summaries)


def read_recipe(
    recipe: str | Path, overrides: Sequence[str] = (), changes: Mapping[str, Any] | None = None
) -> Recipe:
    """Read a recipe and validate it.

    A file may extend another (`extends: NAME`, a known recipe or a file in the same folder): a mapping changes key
    by key, unless it names another `kind`; any other value is replaced. The variant `NAME:VARIANT` is called
    `NAME-VARIANT`.

    Args:
        recipe: the name of a known recipe, or a YAML file; `:VARIANT` after it names a variant.
        overrides: changes as `key=value`, such as `optimiser.learning_rate=1e-5` or `negatives.queue=null`.
        changes: further changes as values by their key, such as `{"corpus.path": "wiki.txt"}`.

    Raises:
        UserError: naming the file, the line and the key of the first mistake.

    >>> read_recipe("simcse-bert-base", ["optimiser.batch=32"]).optimiser.batch
    32
    """
    draft = _read(_find(str(recipe)), ())
    for override in overrides:
        _set(draft, *read_change(override), f"--set {override}")
    for key, value in (changes or {}).items():
        _set(draft, key, value, f"--set {key}={value}")
    try:
        return Recipe.model_validate(draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, f"recipe {recipe}", known_keys(Recipe))) from error


def as_yaml(recipe: Recipe) -> str:
    return str(yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def _summary(place: _Place) -> str:
    text = place.file.read_text(encoding="utf-8")
    if place.variant is None:
        return text.partition("\n")[0].removeprefix("#").strip()
    comment = re.search(rf"^ +{re.escape(place.variant)}:.*?#(.*)$", text, re.MULTILINE)
    return comment[1].strip() if comment else ""


def _folder() -> Path:
    return Path(str(files("stsbench.training") / "recipes"))


def _find(name: str, beside: Path | None = None) -> _Place:
    if name in recipe_names():
        stem, colon, variant = name.partition(":")
        return _Place(_folder() / f"{stem}.yaml", variant if colon else None)
    start, colon, variant = name.rpartition(":")
    if not (colon and Path(start).suffix in {".yaml", ".yml"}):
        start, variant = name, ""
    path = Path(start).expanduser() if beside is None else beside / start
    if path.suffix in {".yaml", ".yml"} and path.is_file():
        return _Place(path, variant or None)
    if path.suffix in {".yaml", ".yml"}:
        raise UserError(f"there is no recipe file {path}: check the path.")
    stem, colon, _ = name.partition(":")
    variants = [known for known in recipe_names() if colon and known.startswith(f"{stem}:")]
    choices = variants or [known for known in recipe_names() if ":" not in known]
    every = f"choose one of {', '.join(choices)}, or a .yaml file."
    raise UserError(f"unknown recipe {name!r}: {suggestion(name, recipe_names(), otherwise=every)}")


def _read(place: _Place, above: tuple[_Place, ...]) -> _Draft:
    path = place.file
    if place in above:
        raise UserError(f"{path} extends itself, through {above[-1].file}: remove one `extends`.")
    written = _written(path)
    values, places = written.values, written.places
    variants = _variants(written)
    values.pop("variants", None)
    parent = values.pop("extends", None)
    draft = _Draft() if parent is None else _read(_find(str(parent), path.parent), (*above, place))
    draft.change(values, {keys: at for keys, at in places.items() if keys[0] != "variants"})
    if place.variant is not None:
        _vary(draft, place.variant, variants, places, path)
    return draft


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
        if unfit := {"extends", "variants", "name"} & changes.keys():
            raise UserError(
                f"{line}: variants.{name}: {sorted(unfit)[0]!r} does not go into a variant; remove it."
            )
    return variants


def _vary(draft: _Draft, name: str, variants: dict[str, Any], places: dict[Keys, str], path: Path) -> None:
    if name not in variants:
        every = f"it has {', '.join(variants)}." if variants else "it has none."
        raise UserError(f"{path} has no variant {name!r}: {suggestion(name, tuple(variants), otherwise=every)}")
    above = ("variants", name)
    written = {keys[2:]: at for keys, at in places.items() if keys[:2] == above and len(keys) > 2}
    called = {"name": f"{draft.values['name']}-{name}"} if "name" in draft.values else {}
    draft.change(variants[name] | called, written)


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    if "kind" in new and new["kind"] != old.get("kind"):
        return new
    return old | {key: _merge(old.get(key), value) for key, value in new.items()}


def read_change(override: str) -> tuple[str, Any]:
    """Return the key and the value of a change, `optimiser.learning_rate=1e-5`."""
    name, equals, text = override.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise UserError(f"--set {override}: write key=value, such as optimiser.learning_rate=1e-5.")
    try:
        return name.strip(), yaml.safe_load(text)
    except ValueError as error:
        raise UserError(f"--set {override}: {error}; choose another value.") from error
    except yaml.YAMLError as error:
        raise UserError(f"--set {override}: the value is not valid YAML; put it in quotes.") from error


def _set(draft: _Draft, name: str, value: Any, place: str) -> None:
    for key in reversed(name.split(".")):
        value = {key: value}
    draft.change(value, dict.fromkeys(key_paths(value), place))
