"""What is published about a claim: who prints it, how it was taken, what other seeds gave."""

from stsbench.foundation.errors import UserError
from stsbench.published import Checkpoint, checkpoint, rows
from stsbench.published.measured import seeded_systems, seeds, source
from stsbench.records.table import AVERAGE
from stsbench.verify.diagnose_claim import Claim, Value

_MOST_PRINTS = 3


def facts(claim: Claim, *, model: str, pooling: str, measured: float | None) -> list[str]:
    """Return what published documents say, a sentence each.

    Args:
        claim: what is to be explained.
        model: the name of the model that was measured.
        pooling: how it was pooled by default.
        measured: its average over the STS test sets in the default setting, x 100, if that is at hand.
    """
    own, of_row = _known(model), None if claim.row is None else _known(claim.row.row.system)
    found = []
    if own and of_row and own.name != of_row.name and claim.row:
        found.append(f"{claim.row.name} is a row of {of_row.hub or of_row.name}; you measured {model}.")
    expected = of_row or own
    if expected and expected.pooling and expected.pooling != pooling:
        found.append(
            f"{expected.name} was scored with pooling `{expected.pooling}` ({expected.pooling_source}); "
            f"your setting is `{pooling}`."
        )
    if claim.row is None:
        found += [sentence for value in claim.values if (sentence := _prints(value))]
    else:
        found += list(claim.row.row.notes)
    system = claim.row.row.system if claim.row else own.system if own else ""
    another = own is not None and own.system != system
    found += _seeds(system, claim, None if another else measured)
    return found


def _known(name: str) -> Checkpoint | None:
    try:
        return checkpoint(name)
    except UserError:
        return None


def _prints(value: Value) -> str:
    """Return where just this number is printed, if it is in few places."""
    if value.decimals < 2:
        return ""
    task = "Avg. STS" if value.task == AVERAGE else value.task
    names = [
        row.name
        for row in rows().values()
        for cell in row.cells
        if cell.setting.task == task
        and cell.score == value.score
        and cell.setting.metric in {"spearman", "pearson"}
    ]
    few = list(dict.fromkeys(names))[:_MOST_PRINTS]
    more = len(set(names)) - len(few)
    if not few:
        return ""
    on = "as the average" if value.task == AVERAGE else f"on {value.task}"
    return f"{value} {on} is printed in {', '.join(few)}{f' and {more} more' if more else ''}."


def _seeds(system: str, claim: Claim, measured: float | None) -> list[str]:
    if system not in seeded_systems():
        return []
    averages = seeds(system)["Avg."]
    about = source("seeds")
    found = [
        f"Over {len(averages)} seeds {system} averages {averages.mean():.2f}, from {averages.min():.2f} to "
        f"{averages.max():.2f} ({about.address}: {about.note.partition('.')[0].lower()})."
    ]
    claimed = next((value.score for value in claim.values if value.task == AVERAGE), None)
    if claimed is None and len(claim.values) == 7:
        claimed = sum(value.score for value in claim.values) / 7
    for what, number in (("The claimed", claimed), ("Your", measured)):
        if number is not None:
            found.append(f"{what} {number:.2f} is above {(averages < number).sum()} of them.")
    return found
