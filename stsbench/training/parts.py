"""What every part of a recipe is: validated data, which a bare name may stand for, and which may be one's own."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidatorFunctionWrapHandler


class RecipePart(BaseModel):
    """A part of a recipe: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def part_of(*families: type[RecipePart]) -> Callable[[Any, ValidatorFunctionWrapHandler], Any]:
    """Return the validator of a field that takes one of our parts or one of the person's own.

    A bare name is a part without arguments: `identity` is `{kind: identity}`. A kind with a colon is a class of
    one's own: `kind: my_package.views:Shout`, or `kind: views.py:Shout` for a file beside where the training is
    started. It is imported, and so runs, when the recipe is read; it names its `kind` as a plain string.

    Args:
        families: what a class of one's own must be a kind of.
    """

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        values = {"kind": value} if isinstance(value, str) else value
        kind = values.get("kind") if isinstance(values, dict) else None
        if isinstance(kind, str) and ":" in kind:
            return _imported(kind, families).model_validate(values)
        return handler(values)

    return validate


def _imported(kind: str, families: tuple[type[RecipePart], ...]) -> type[RecipePart]:
    module, _, name = kind.rpartition(":")
    try:
        part = getattr(
            _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module), name
        )
    except Exception as error:  # whatever the person's own module raises
        raise ValueError(f"{kind} cannot be imported ({type(error).__name__}: {error})") from error
    if not (isinstance(part, type) and issubclass(part, families)):
        wanted = " or ".join(family.__name__ for family in families)
        raise ValueError(f"{kind} is no class of the kind {wanted}")  # noqa: TRY004 - a value of the recipe
    return part


def _from_file(path: Path) -> Any:
    # Imported once: the classes of a second import would be others.
    name = f"stsbench_own_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path.resolve()):
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
