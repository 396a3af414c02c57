"""Takes the pictures of README and the documentation's first page: the first screen of a report.

    python docs/pictures.py

Needs Chromium. The report is of the committed record of all-MiniLM-L6-v2. Writes `docs/_static/report-light.png`
and `report-dark.png`, to be committed.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import stsbench as sb
from stsbench.base.files import atomic_path

HERE = Path(__file__).parent
RUN = HERE.parent / "reports" / "examples" / "runs" / "all-minilm-l6-v2"
WIDTH, HEIGHT = 1100, 760
SCHEMES = {"light": 1, "dark": 0}
"""What Chromium calls the two preferences."""


def main() -> None:
    """Take both."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("pictures are taken by Chromium, which is not here.")
    with tempfile.TemporaryDirectory() as folder:
        page = sb.report(RUN, Path(folder) / "report", title="all-MiniLM-L6-v2", analyse=False)
        for scheme, number in SCHEMES.items():
            take(browser, page, HERE / "_static" / f"report-{scheme}.png", number)


def take(browser: str, page: Path, target: Path, scheme: int) -> None:
    """Take a picture of a page's first screen."""
    with tempfile.TemporaryDirectory() as profile, atomic_path(target) as picture:
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--screenshot={picture}",
        ]
        subprocess.run([browser, *options, page.resolve().as_uri()], check=True, capture_output=True)
        print(f"written to {target}")


if __name__ == "__main__":
    main()
