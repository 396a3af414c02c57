"""Takes the pictures of README and the documentation: the first screens of our pages, light and dark.

    STSBENCH_DATA=path/to/senteval python docs/pictures.py [NAME ...]

Needs Chromium, and the benchmark data for the pages of the seven STS tasks. What is shown is made anew, by the
commands in `PICTURES`, from runs of the packaged all-MiniLM-L6-v2. Writes `docs/_static/NAME-light.png` and
`NAME-dark.png`, and beside them `pictures.json`: by which version and commands they were made, and the hashes of
the pages and of the pictures. All of it is to be committed; `tests/docs/test_pictures.py` fails when the version
is not the package's. No sentence of a data set is shown: pairs are those of the sample that comes with stsbench.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from PIL import Image

import stsbench as sb
from stsbench.base.files import atomic_path
from stsbench.cli.app import commands

HERE = Path(__file__).parent
PLACE = HERE / "_static"
RECORD = "pictures.json"
WIDTH = 1100
SCHEMES = {"light": 1, "dark": 0}
"""What Chromium calls the two preferences."""

COLOURS = 256
"""Of a picture: enough for letters and plain areas, at a third of the bytes."""

RUNS = {
    "runs/minilm": "--model minilm",
    "runs/minilm-64": "--model minilm --dimensions 64",
    "runs/minilm-cls": "--model minilm --pooling cls_before_pooler",
    "sample/minilm": "--model minilm --tasks sample",
    "sample/minilm-64": "--model minilm --tasks sample --dimensions 64",
}
"""What is measured, by folder: the options of `stsbench run`."""


@dataclass(frozen=True)
class Picture:
    """A page and how it is made.

    Attributes:
        command: of stsbench, after its name; the paths are those of `RUNS`.
        page: what it writes and the browser opens.
        runs: the folders that it reads.
        height: of the picture, in pixels: the first screen, or as far as the page is worth showing.
    """

    command: str
    page: str
    runs: tuple[str, ...]
    height: int = 760


PICTURES = {
    "report": Picture("report runs/minilm --out report", "report/index.html", ("runs/minilm",)),
    "explore": Picture(
        "explore sample/minilm sample/minilm-64 --out pairs.html",
        "pairs.html",
        ("sample/minilm", "sample/minilm-64"),
        height=1200,
    ),
    "board": Picture(
        "board runs --out board.html",
        "board.html",
        ("runs/minilm", "runs/minilm-64", "runs/minilm-cls"),
        height=1280,
    ),
}
"""By the name of the pictures. Without its command in stsbench a picture is left out."""


def main() -> None:
    """Take the pictures that are named, or all of them."""
    parser = argparse.ArgumentParser(description="Take the pictures of README and the documentation.")
    parser.add_argument("names", nargs="*", help="which; by default all")
    names = parser.parse_args().names or list(PICTURES)
    if unknown := [name for name in names if name not in PICTURES]:
        sys.exit(f"there is no picture {', '.join(unknown)}: choose from {', '.join(PICTURES)}.")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("pictures are taken by Chromium, which is not here.")
    record = json.loads((PLACE / RECORD).read_text("utf-8")) if (PLACE / RECORD).exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in names:
            picture = PICTURES[name]
            if picture.command.split()[0] not in commands():
                print(f"{name}: left out, as stsbench has no such command.")
                continue
            record[name] = taken(browser, name, picture, folder)
            with atomic_path(PLACE / RECORD) as path:
                path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def taken(browser: str, name: str, picture: Picture, folder: Path) -> dict[str, object]:
    """Make a page and take its pictures; return what the record says of them."""
    measurements = [f"run {RUNS[run]} --out {run}" for run in picture.runs]
    for run, measurement in zip(picture.runs, measurements, strict=True):
        if not (folder / run).exists():
            stsbench(f"{measurement} --quiet", folder)
    stsbench(picture.command, folder)
    page = folder / picture.page
    images = {}
    for scheme, number in SCHEMES.items():
        image = PLACE / f"{name}-{scheme}.png"
        take(browser, page, image, number, picture.height)
        images[image.name] = sha256(image.read_bytes()).hexdigest()
    commands = [f"stsbench {command}" for command in (*measurements, picture.command)]
    shown = sha256(page.read_bytes()).hexdigest()
    return {"version": sb.__version__, "commands": commands, "page": shown, "pictures": images}


def stsbench(command: str, folder: Path) -> None:
    """Run a command of this version in a folder."""
    print(f"stsbench {command}", flush=True)
    subprocess.run(
        [sys.executable, "-m", "stsbench", *shlex.split(command)], cwd=folder, check=True, stdout=sys.stderr
    )


def take(browser: str, page: Path, target: Path, scheme: int, height: int) -> None:
    """Take a picture of a page's first screen."""
    with tempfile.TemporaryDirectory() as profile, atomic_path(target) as picture:
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            # What a script draws is there before the picture.
            "--virtual-time-budget=5000",
            f"--user-data-dir={profile}",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--window-size={WIDTH},{height}",
            f"--screenshot={picture}",
        ]
        subprocess.run([browser, *options, page.resolve().as_uri()], check=True, capture_output=True)
        with Image.open(picture) as image:
            fewer = small(image)
        fewer.save(picture, format="PNG", optimize=True)
        print(f"written to {target}")


def small(image: Image.Image) -> Image.Image:
    """Return a picture in few colours, those of a few small points among them."""
    return image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main()
