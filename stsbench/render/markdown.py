"""A table in GitHub's Markdown."""

import re
from typing import TYPE_CHECKING

from stsbench.render.cells import columns_of, one_line

if TYPE_CHECKING:
    import pandas as pd

# An underscore inside a word, as in cls_before_pooler, is an underscore in Markdown: it stays readable.
_SPECIAL = re.compile(r"[\\`*\[\]~$|&<>]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def to_markdown(frame: "pd.DataFrame", *, decimals: int = 2, caption: str | None = None) -> str:
    r"""Return a table in GitHub's Markdown, whose text reads as it stands in the data.

    Args:
        frame: the table; its index is not shown.
        decimals: digits after the point.
        caption: a bold line above the table.

    Example:
        >>> import pandas as pd
        >>> print(to_markdown(pd.DataFrame({"Model": ["a|b"], "Avg.": [78.904]})))
        | Model | Avg. |
        | --- | ---: |
        | a\|b | 78.90 |
    """
    columns = columns_of(frame, decimals)
    rows = [
        [escape(column.name) for column in columns],
        ["---:" if column.is_numeric else "---" for column in columns],
        *zip(*(map(escape, column.cells) for column in columns), strict=True),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return table if caption is None else f"**{escape(one_line(caption).strip())}**\n\n{table}"


def escape(text: str) -> str:
    r"""Return one line of text with all that Markdown, HTML or GitHub's mathematics would act on escaped.

    Example:
        >>> print(escape("<b> $x$ cls_before_pooler"))
        &lt;b&gt; \$x\$ cls_before_pooler
    """
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), text)
