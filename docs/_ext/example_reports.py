"""The contents of `reports/examples`: analyses as pages of this site, reports unchanged."""

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

EXAMPLES = Path(__file__).resolve().parents[2] / "reports" / "examples"


def write(app: Sphinx) -> None:
    """Copy the analyses with their figures and tables to the sources."""
    folder = Path(app.srcdir) / "examples"
    shutil.rmtree(folder, ignore_errors=True)
    for name in (".", "sample"):
        (folder / name).mkdir(parents=True)
        for path in (EXAMPLES / name).glob("*"):
            if path.suffix in {".md", ".png", ".csv"}:
                shutil.copy2(path, folder / name / (path.name if path.suffix != ".md" else "index.md"))
    with (folder / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n```{toctree}\n:hidden:\n\nOn the sample <sample/index>\n```\n")


def copy(app: Sphinx, error: Exception | None) -> None:
    """Copy the reports to the site."""
    if error is None and app.builder.format == "html":
        for report in sorted(page.parent for page in EXAMPLES.rglob("index.html")):
            shutil.copytree(
                report, Path(app.outdir) / "examples" / report.relative_to(EXAMPLES), dirs_exist_ok=True
            )


def setup(app: Sphinx) -> dict[str, Any]:
    """Write before the sources are searched, copy after everything else."""
    app.connect("builder-inited", write)
    app.connect("build-finished", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
