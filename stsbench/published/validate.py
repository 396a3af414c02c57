"""Do the published numbers add up? What does not is a finding: about a paper, or about our own entries."""

import re
from collections.abc import Iterable, Iterator

from stsbench.published.arithmetic import check_arithmetic, check_granularity, digits
from stsbench.published.catalogue import PublishedRow, checkpoints, papers, rows_of, systems, tables
from stsbench.published.findings import KINDS, NOISE, Finding, as_printed, finding, rounds_to
from stsbench.published.measured import logged_dev_scores, logged_systems, logged_test_scores
from stsbench.published.prints import check_prints
from stsbench.published.schema import Cell, Table

_DATA_SET = re.compile(r"[A-Z][A-Za-z]*-?[A-Z0-9]+")
_SAME_HEAD = {"SST": "SST2", "SST-2": "SST2", "STSBenchmark": "STS-B"}
_LOGGED_NAMES = {"STS-B": "STSBenchmark", "SICK-R": "SICKRelatedness"}


def validate(given: Iterable[Table] | None = None) -> list[Finding]:
    """Return everything in the published numbers that does not add up.

    Averages must be the mean of their cells, to the digits printed; differences the difference of theirs; two
    prints of one thing the same; a log what its paper prints; and the entries must hold together.

    Args:
        given: the tables to look at; all, with the systems and checkpoints, by default.

    Returns:
        The findings, by kind in the order of `KINDS`, then in the order of the tables.

    >>> [finding.row for finding in validate() if finding.kind == "average"]
    ['sbert-base', 'bert-base-avg', 'bert-base-avg']
    """
    looked_at = list(tables().values() if given is None else given)
    found = [row for table in looked_at for row in rows_of(table)]
    findings = [*check_prints(found)]
    for table in looked_at:
        findings += _check_heads(table)
    for row in found:
        findings += [*check_arithmetic(row), *check_granularity(row), *_check_log(row), *_check_entry(row, found)]
    if given is None:
        findings += [*_check_checkpoints(found), *_check_references(found)]
    order = list(KINDS)
    return sorted(findings, key=lambda finding: order.index(finding.kind))


def _check_heads(table: Table) -> Iterator[Finding]:
    for column in table.columns:
        task, head = column.setting.task, column.label
        if not _DATA_SET.fullmatch(head) or not _DATA_SET.fullmatch(task) or _SAME_HEAD.get(head, head) == task:
            continue
        file, line = papers()[table.paper].file, table.caption_line or 0
        message = f"the column of {task} is headed {head}"
        yield Finding("header", table.name, "", column.name, file, line, head, task, message)


def _check_log(row: PublishedRow) -> Iterator[Finding]:
    if row.system is None or row.system.name not in logged_systems():
        return
    log = logged_test_scores(row.system.name)
    keys = zip(log["task"], log["subset"], strict=True)
    logged = {key: 100 * float(score) for key, score in zip(keys, log["spearman"], strict=True)}
    for cell in row.cells:
        setting = cell.setting
        if setting.metric != "spearman" or setting.variant or setting.group or cell.score is None:
            continue
        part = setting.split if setting.task in _LOGGED_NAMES else "ALL"
        score = logged.get((_LOGGED_NAMES.get(setting.task, setting.task), part))
        told = "the training log"
        if setting.task == "STS-B" and setting.split == "dev":
            # The scores at the end of the log are of the best checkpoint: the dev curve must reach them.
            score = 100 * float(logged_dev_scores(row.system.name)["STS-B"].max())
            told = "the best step of the training log"
        if score is not None and abs(score - cell.score) > cell.rounding + NOISE:
            yield finding("log", cell, f"{score:.2f}", f"{told} has {score:.2f}")


def _check_entry(row: PublishedRow, found: list[PublishedRow]) -> Iterator[Finding]:
    if row.row.system and row.system is None:
        yield _mistake(row, "", f"there is no system {row.row.system}")
    for cell in row.cells:
        for evidence in cell.evidence:
            if not _holds(evidence, cell, row, found):
                yield _mistake(row, cell.column, f"the evidence {evidence!r} does not bear out {as_printed(cell)}")


def _holds(evidence: str, cell: Cell, row: PublishedRow, found: list[PublishedRow]) -> bool:
    kind, _, reason = evidence.partition(":")
    if evidence == "average":
        averages = [column for column in row.table.columns if cell.column in (*column.average_of, column.name)]
        wrong = {finding.column for finding in check_arithmetic(row)}
        return any(column.average_of and column.name not in wrong for column in averages)
    if "/" in kind:
        prints = [other for named in found if named.name == evidence for other in named.cells]
        return any(other.column == cell.column and other.value == cell.value for other in prints)
    return kind in {"format", "text", "derived"} and bool(reason.strip())


def _mistake(row: PublishedRow, column: str, message: str) -> Finding:
    return Finding("entry", row.table.name, row.row.name, column, row.paper.file, row.row.line, "", "", message)


def _check_checkpoints(found: list[PublishedRow]) -> Iterator[Finding]:
    by_name = {row.name: row for row in found}
    for entry in checkpoints().values():
        for row in (by_name[name] for name in entry.expected if name in by_name):
            for cell in row.cells:
                listed = entry.listed_average
                if cell.setting.task != "Avg. STS" or listed is None or cell.value is None:
                    continue
                if not rounds_to(listed, cell.value, digits(row)):
                    message = f"{entry.listed_source} lists {listed:.2f} for {entry.hub}"
                    yield finding("checkpoint", cell, f"{listed:.2f}", message)


def _check_references(found: list[PublishedRow]) -> Iterator[Finding]:
    names = {row.name for row in found}
    measured = {row.row.system for row in found}
    mistakes = []
    for name, system in systems().items():
        if system.row and system.row not in names:
            mistakes.append(f"{name} expects the row {system.row}, which does not exist")
        if system.row and name not in measured:
            mistakes.append(f"no row measures {name}")
        if system.edition_of and system.edition_of not in systems():
            mistakes.append(f"{name} is an edition of {system.edition_of}, which does not exist")
    for name, entry in checkpoints().items():
        if entry.system not in systems():
            mistakes.append(f"{name} is a checkpoint of {entry.system}, which does not exist")
        mistakes += [
            f"{name} expects the row {row}, which does not exist" for row in entry.expected if row not in names
        ]
    for message in mistakes:
        yield Finding("entry", "", "", "", "", 0, "", "", message)
