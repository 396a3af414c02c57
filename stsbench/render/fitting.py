"""Tables whose prose is cut so that a row is a line: names and numbers stay whole."""

from typing import TYPE_CHECKING

from stsbench.render.cells import columns_of, one_line

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100
"""Characters of a line."""

_GAP = 2
_LEAST = 12
"""Characters that prose keeps, however wide the rest is."""


def fitted(frame: "pd.DataFrame", prose: str, width: int = WIDTH) -> "pd.DataFrame":
    """Return a table that is printed no wider than a line, one column of prose cut to what the others leave.

    Args:
        frame: the table.
        prose: the column that may be cut; where it is, an ellipsis ends it.
        width: of a line.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"name": ["a-long-name"], "shows": ["a sentence that nobody can read at once"]})
    >>> fitted(table, "shows", 30).loc[0, "shows"]
    'a sentence that…'
    """
    others = columns_of(frame.drop(columns=prose), 2)
    taken = sum(_GAP + max(map(len, (column.name, *column.cells))) for column in others)
    room = max(width - taken, _LEAST)
    return frame.assign(**{prose: [_cut(one_line(str(text)), room) for text in frame[prose]]})


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1].rstrip()}…"
