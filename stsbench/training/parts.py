"""What every part of a recipe is: validated data, which a bare name may stand for."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class RecipePart(BaseModel):
    """A part of a recipe: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def kind_of(value: Any) -> Any:
    """Read a bare name as a part without arguments: `identity` is `{kind: identity}`."""
    return {"kind": value} if isinstance(value, str) else value
