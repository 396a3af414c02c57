"""The scales that a table is made at, and what each of them changes: `plans/scales.yaml`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion

ScaleName = Literal["demo", "laptop", "paper", "wiring"]
SCALES: tuple[ScaleName, ...] = get_args(ScaleName)

PLANS = Path(str(files("stsbench.reproduction") / "plans"))
"""The folder of the plans."""

SCALES_FILE = PLANS / "scales.yaml"


class PlanPart(BaseModel):
    """A part of a plan: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Scale(PlanPart):
    """What a scale changes.

    Attributes:
        about: what it is, in a sentence.
        seeds: of the trainings.
        stands_in: by the paper's recipe, what is trained instead; empty for the recipe itself.
        without: why a recipe that nothing stands in for cannot be trained.
        set: changes to every recipe.
        rows: how many rows of each of the paper's tasks are measured, where their files are here; 0 for all.
        tasks: what is measured where they are not; empty for the paper's at any rate.
        corpus: what is trained on; empty for what the person names, or a fetched `wiki1m`.
        labelled: whether tables of the sample stand in for labelled ones that nobody named.
        checkpoints: whether public checkpoints are measured; else their rows are trained or left out.
        tried: whether encoders of random weights stand in for all bases and checkpoints (see `stand_ins`).
        last: whether the last step is measured beside the selected one; false where they are the same.
        options: of analyses.
        sample_options: of analyses, where the sample stands in for the paper's tasks.
        silent: why what comes out answers no claim; empty where it does.
    """

    about: str
    seeds: tuple[int, ...]
    stands_in: Mapping[str, str] = {}
    without: str = ""
    set: Mapping[str, Any] = {}
    rows: int = 0
    tasks: Mapping[str, str] = {}
    corpus: str = ""
    labelled: bool = False
    checkpoints: bool = False
    tried: bool = False
    last: bool = True
    options: Mapping[str, Mapping[str, Any]] = {}
    sample_options: Mapping[str, Mapping[str, Any]] = {}
    silent: str = ""


@cache
def scales() -> Mapping[ScaleName, Scale]:
    """Return what each scale changes."""
    written = read_plan_file(SCALES_FILE)
    return MappingProxyType({name: Scale.model_validate(written[name]) for name in SCALES})


def demand_scale(name: str) -> ScaleName:
    """Return a scale's name.

    Raises:
        UserError: if there is no such scale.
    """
    for scale in SCALES:
        if scale == name:
            return scale
    raise UserError(f"there is no scale {name!r}: {suggestion(name, SCALES)}")


def read_plan_file(path: Path) -> dict[str, Any]:
    """Return what a file in the folder of plans says."""
    written: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return written
