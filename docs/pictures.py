"""Takes the pictures of README and the documentation: the first screens of our pages, light and dark.

    STSBENCH_DATA=path/to/senteval python docs/pictures.py [NAME ...]

Needs Chromium, and the benchmark data for the pages of the seven STS tasks. What is shown is made anew, by the
commands in `PICTURES`, from runs of the packaged all-MiniLM-L6-v2. Writes `docs/_static/NAME-light.png` and
`NAME-dark.png`, and beside them `pictures.json`: by which version and commands they were made, and the hashes of
the pages and of the pictures. All of it is to be committed; `tests/docs/test_pictures.py` fails when the version
is not the package's. No sentence of a data set is shown: pairs are those of the sample that comes with stsbench.

With `--screens FOLDER` it writes the first screens of the same pages on a desktop and on a phone there, to look at
them; with `--site build/docs`, that of the documentation, too.
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

HERE = Path(__file__).parent
PLACE = HERE / "_static"
RECORD = "pictures.json"
SCHEMES = {"light": 1, "dark": 0}
"""What Chromium calls the two preferences."""

SCREENS = {"desktop": (1440, 900), "phone": (390, 844)}
"""Widths and heights in pixels."""

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
        size: width and height of the picture in pixels, as far as the page is worth showing.
    """

    command: str
    page: str
    runs: tuple[str, ...]
    size: tuple[int, int]


PICTURES = {
    "report": Picture("report runs/minilm --out report", "report/index.html", ("runs/minilm",), (1000, 552)),
    "explore": Picture(
        "explore sample/minilm sample/minilm-64 --out pairs.html",
        "pairs.html",
        ("sample/minilm", "sample/minilm-64"),
        (1280, 860),
    ),
    "board": Picture(
        "board runs --out board.html",
        "board.html",
        ("runs/minilm", "runs/minilm-64", "runs/minilm-cls"),
        (1280, 720),
    ),
}
"""By the name of the pictures."""


def main() -> None:
    """Take the pictures that are named, or all of them."""
    parser = argparse.ArgumentParser(description="Take the pictures of README and the documentation.")
    parser.add_argument("names", nargs="*", help="which; by default all")
    parser.add_argument("--screens", type=Path, help="write first screens of a desktop and a phone to this folder")
    parser.add_argument("--site", type=Path, help="the folder of the built documentation, for --screens")
    options = parser.parse_args()
    names = options.names or list(PICTURES)
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
            commands = made(picture, folder)
            if options.screens:
                take_screens(browser, name, folder / picture.page, options.screens)
                continue
            record[name] = taken(browser, name, folder / picture.page, picture.size) | {"commands": commands}
            with atomic_path(PLACE / RECORD) as path:
                path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if options.screens and options.site:
        take_screens(browser, "docs", options.site / "index.html", options.screens)


def made(picture: Picture, folder: Path) -> list[str]:
    """Make a page in a folder; return the commands."""
    measurements = [f"run {RUNS[run]} --out {run}" for run in picture.runs]
    for run, measurement in zip(picture.runs, measurements, strict=True):
        if not (folder / run).exists():
            stsbench(f"{measurement} --quiet", folder)
    stsbench(picture.command, folder)
    return [f"stsbench {command}" for command in (*measurements, picture.command)]


def taken(browser: str, name: str, page: Path, size: tuple[int, int]) -> dict[str, object]:
    """Take the pictures of a page for the documentation; return the hashes of all, and the version."""
    images = {}
    for scheme, number in SCHEMES.items():
        image = PLACE / f"{name}-{scheme}.png"
        take(browser, page, image, number, size)
        images[image.name] = sha256(image.read_bytes()).hexdigest()
    return {"version": sb.__version__, "page": sha256(page.read_bytes()).hexdigest(), "pictures": images}


def take_screens(browser: str, name: str, page: Path, folder: Path) -> None:
    """Take a page's first screens of a desktop and of a phone, in light colours."""
    folder.mkdir(parents=True, exist_ok=True)
    for screen, size in SCREENS.items():
        take(browser, page, folder / f"{name}-{screen}.png", SCHEMES["light"], size)


def stsbench(command: str, folder: Path) -> None:
    """Run a command of this version in a folder."""
    print(f"stsbench {command}", flush=True)
    subprocess.run(
        [sys.executable, "-m", "stsbench", *shlex.split(command)], cwd=folder, check=True, stdout=sys.stderr
    )


def take(browser: str, page: Path, target: Path, scheme: int, size: tuple[int, int]) -> None:
    """Take a picture of a page's first screen, of a width and height in pixels."""
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
            f"--window-size={size[0]},{size[1]}",
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
