"""The recipe verbs: which there are, and what one says."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stsbench.training.recipe_files import as_yaml, read_recipe, recipe_names, recipe_summary

if TYPE_CHECKING:
    import pandas as pd


def recipe_list() -> "pd.DataFrame":
    """Return the recipes that come with stsbench, a row for each: `recipe`, `what`."""
    import pandas as pd

    return pd.DataFrame([{"recipe": name, "what": recipe_summary(name)} for name in recipe_names()])


def print_recipe(recipe: str, overrides: Sequence[str] = ()) -> str:
    """Return a recipe in full, as YAML."""
    return as_yaml(read_recipe(recipe, overrides))
