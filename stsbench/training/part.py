"""What every part of a recipe is: validated, unchangeable data that knows no other key."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def kind_of(value: Any) -> Any:
    """Read a bare name as a part without arguments: `identity` is `{kind: identity}`."""
    return {"kind": value} if isinstance(value, str) else value
