"""One table in any of the formats."""

from typing import TYPE_CHECKING, Literal, get_args

from stsbench.foundation.errors import UserError
from stsbench.render.latex import to_latex
from stsbench.render.machine import to_csv, to_json
from stsbench.render.markdown import to_markdown
from stsbench.render.terminal import to_terminal

if TYPE_CHECKING:
    import pandas as pd

Style = Literal["terminal", "markdown", "latex", "csv", "json"]


def render(frame: "pd.DataFrame", style: Style, decimals: int = 2, caption: str | None = None) -> str:
    """Return a table as text without a final line break, its own text escaped as the style needs.

    Args:
        frame: the table; its index is not shown.
        style: `terminal`, `markdown` and `latex` are for readers, `csv` and `json` for programs.
        decimals: digits after the point, for readers; programs get full precision.
        caption: what the table shows, for readers; `csv` and `json` have no place for it.

    Raises:
        UserError: if there is no such style.

    Example:
        >>> import pandas as pd
        >>> print(render(pd.DataFrame({"Task": ["STS16"], "Spearman": [78.9912]}), "csv"))
        Task,Spearman
        STS16,78.9912
    """
    match style:
        case "terminal":
            return to_terminal(frame, decimals=decimals, caption=caption)
        case "markdown":
            return to_markdown(frame, decimals=decimals, caption=caption)
        case "latex":
            return to_latex(frame, decimals=decimals, caption=caption)
        case "csv":
            return to_csv(frame)
        case "json":
            return to_json(frame)
        case _:
            raise UserError(f"no table style {style!r}: choose one of {', '.join(get_args(Style))}.")
