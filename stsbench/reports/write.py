"""A report as a folder: the page, the same in Markdown, every table as CSV and LaTeX, every figure as SVG."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from stsbench.foundation.errors import UserError
from stsbench.foundation.files import told_as_unwritable
from stsbench.render import to_csv, to_latex
from stsbench.reports.html import GENERATOR, to_html
from stsbench.reports.markdown import to_page
from stsbench.reports.page import Report

PAGE = "index.html"


def write_report(report: Report, folder: Path) -> Path:
    """Write a report into a folder that is then whole: another report in it is replaced.

    Returns:
        The page.

    Raises:
        UserError: if the folder holds anything but a report, or cannot be written.
    """
    require_replaceable(folder)
    if twice := [name for name, count in Counter(report.anchors).items() if count > 1]:
        raise ValueError(f"two parts of the report are called {', '.join(twice)}")
    with told_as_unwritable(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, so that it is the same disk and putting it in place is a rename.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
            new, old = Path(temporary) / "new", Path(temporary) / "old"
            _fill(report, new)
            if folder.exists():
                folder.replace(old)
            new.replace(folder)
    return folder / PAGE


def require_replaceable(folder: Path) -> None:
    """Make sure that nothing but a report would be lost.

    Raises:
        UserError: if the folder holds something else.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    page = folder / PAGE
    if not page.is_file() or GENERATOR not in page.read_text(encoding="utf-8", errors="replace")[:2000]:
        raise UserError(f"{folder} holds something else than a report: choose another folder with --out.")


def _fill(report: Report, folder: Path) -> None:
    for part in ("tables", "figures"):
        (folder / part).mkdir(parents=True)
    for table in report.tables:
        _write(folder / "tables" / f"{table.name}.csv", to_csv(table.frame) + "\r\n")
        text = to_latex(table.frame, decimals=table.decimals, caption=table.caption)
        _write(folder / "tables" / f"{table.name}.tex", text + "\n")
    for figure in report.figures:
        _write(folder / "figures" / f"{figure.name}.svg", figure.svg)
    if not report.figures:
        shutil.rmtree(folder / "figures")
    _write(folder / "README.md", to_page(report))
    _write(folder / PAGE, to_html(report))


def _write(path: Path, text: str) -> None:
    # Line ends as they are; of file names in another encoding a record may hold halves of characters.
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
