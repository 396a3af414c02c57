"""`reproductions`: which tables and figures of the papers can be made, and what it takes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stsbench.published.catalogue import exhibit, exhibits
from stsbench.render.formats import fitted
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.reproduction.layout import layout
from stsbench.reproduction.scales import SCALES, ScaleName, scales
from stsbench.reproduction.table_plan import TablePlan, plan_of, plans_by_exhibit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Reproductions(Result):
    """Tables and figures of the papers: whether they can be made, and what it takes.

    Attributes:
        only: the one that is told of in full; empty for all of them, a line each.
    """

    only: str = ""

    @property
    def frame(self) -> "pd.DataFrame":
        """A row for each, with what it shows, what it takes at each scale, and its claims."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for entry in exhibits().values():
            if self.only not in {"", entry.name}:
                continue
            plan = plans_by_exhibit()[entry.name]
            by_scale: dict[str, str] = {scale: _takes(plan, entry.name, scale) for scale in SCALES}
            can = [scale for scale, what in by_scale.items() if not what.startswith("cannot")]
            rows.append(
                {
                    "table": entry.name,
                    "shows": entry.caption,
                    "kind": entry.kind,
                    "can be made": ", ".join(can),
                    **by_scale,
                    "claims": len(plan.claims_of(entry.name)),
                    "why not": plan.cannot,
                    "plan": plan.name,
                }
            )
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Return what can be made at which scales, and what cannot be made with why; of one all that is known."""
        if self.only:
            return Tables([self._facts()])
        frame = self.frame
        can = frame["can be made"] != ""
        # At the scale wiring everything is made that the scale paper makes.
        at = frame["can be made"].str.removesuffix(", wiring")
        made = frame.assign(at=at)[can][["table", "at", "claims", "shows"]]
        cannot = frame[~can][["table", "why not"]]
        whole = "One of them with all that it takes: `stsbench reproduce --list NAME`."
        return Tables(
            [
                Table(fitted(made, "shows"), "What can be made, and at which scales", notes=(whole,)),
                Table(fitted(cannot, "why not"), "What cannot be made"),
            ]
        )

    def _facts(self) -> Table:
        """Return all that is known of one, a line each."""
        import pandas as pd

        plan, row = plan_of(self.only), self.frame.to_dict("records")[0]
        facts = [(str(name), str(value)) for name, value in row.items() if value != ""]
        labels = plan.names_of(self.only).rows
        for scale in SCALES:
            for key, why in layout(plan, self.only, scale).missing.items():
                name, comma, column = key.partition(", ")
                facts.append((f"left out at {scale}", f"{labels[name]}{comma}{column}: {why}"))
        facts += [("claim", claim.says) for claim in plan.claims_of(self.only)]
        facts += [("note", note) for note in plan.notes]
        return Table(pd.DataFrame(facts, columns=["what", "of it"]))


def reproductions(table: str = "") -> Reproductions:
    """Return tables and figures of the papers: whether they can be made, and what it takes at each scale.

    Args:
        table: one of them, which is told of in full; empty for all.

    Raises:
        UserError: if there is no such table or figure.

    >>> reproductions().frame.set_index("table").loc["esimcse-coling2022-9", "demo"]
    '6 trainings; 5 of its rows left out'
    >>> print(reproductions("esimcse-coling2022-9").table()[0].frame.loc[0, "of it"])
    esimcse-coling2022-9
    """
    return Reproductions(exhibit(table).name if table else "")


def _takes(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Return what making an exhibit at a scale takes, or why it cannot be made, in a phrase."""
    if plan.cannot:
        return f"cannot be made: {plan.cannot}"
    if plan.counts:
        return "pairs counted in the tasks' files"
    what = layout(plan, name, scale)
    trained = sum(made.is_trained for made in what.made)
    measured = len(what.made) - trained
    if not what.made:
        return f"cannot be made: {next(iter(what.missing.values()))}"
    parts = []
    if trained:
        trainings = trained * len(scales()[scale].seeds)
        parts.append(f"{trainings} training{'s' if trainings > 1 else ''}")
    if measured:
        parts.append(f"{measured} checkpoint{'s' if measured > 1 else ''} measured")
    if plan.analysis:
        parts.append(f"analysis {plan.analysis}")
    if plan.reading:
        parts.append("by our reading of the text")
    return ", ".join(parts) + (f"; {len(what.missing)} of its rows left out" if what.missing else "")
