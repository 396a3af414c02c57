"""Compare the transcripts of pages with what the commands print.

A page's ```console blocks are commands behind `$` with their output. They are run one after the other, page by
page, in an empty folder:

    python docs/transcripts.py docs/tutorial.md            # compare
    python docs/transcripts.py --write docs/tutorial.md    # put what was printed in place

Commands other than `stsbench` are not run. A line `...` replaces output that is left out. Numbers with
decimals may differ by a unit of the last, as they do between machines.
"""

import argparse
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

LEFT_OUT = "..."

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRESS = re.compile(r": \d+ %, about .* to go$")
"""Progress lines, which depend on the speed of the machine."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Transcript:
    """A command and its printed lines on a page, both streams together."""

    command: str
    output: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"$ {self.command}", *self.output])


def transcripts(block: str) -> list[Transcript]:
    r"""Return the commands of a block.

    >>> transcripts("$ one \\\n    --two\nout\n$ three\n")
    [Transcript(command='one \\\n    --two', output=('out',)), Transcript(command='three', output=())]
    """
    found: list[Transcript] = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        end = next(number for number, line in enumerate(lines) if not line.endswith("\\"))
        found.append(Transcript("\n".join(lines[: end + 1]), tuple(lines[end + 1 :])))
    return found


def printed(command: str) -> list[str] | None:
    """Run a stsbench command in this process and return what it prints; None for other commands."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    settings = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
    if not words or words[0] != "stsbench" or {"|", ">"} & set(words):
        return None
    from stsbench.cli.app import main

    before, arguments, stream = dict(os.environ), sys.argv, io.StringIO()
    os.environ.update(settings)
    sys.argv = words
    try:
        with redirect_stdout(stream), redirect_stderr(stream):
            main()
    except SystemExit:
        pass
    finally:
        sys.argv = arguments
        os.environ.clear()
        os.environ.update(before)
    lines = (line.rstrip() for line in stream.getvalue().rstrip("\n").split("\n"))
    return [line for line in lines if not _PROGRESS.search(line)]


def agree(claimed: Sequence[str], found: Sequence[str]) -> bool:
    """Return whether a page's lines are what was printed, apart from lines left out and last digits.

    >>> agree(["a  12.34", "...", "end"], ["a 12.35", "b", "c", "end"])
    True
    >>> agree(["a 12.34"], ["a 12.44"]), agree(["a", "..."], ["b", "c"])
    (False, False)
    """
    if LEFT_OUT not in claimed:
        return len(claimed) == len(found) and all(map(_agrees, claimed, found))
    start = claimed.index(LEFT_OUT)
    head, tail = claimed[:start], claimed[start + 1 :]
    if len(head) + len(tail) > len(found):
        return False
    return agree(head, found[:start]) and agree(tail, found[len(found) - len(tail) :])


def _agrees(claimed: str, found: str) -> bool:
    words = _NUMBER.sub("#", claimed).split(), _NUMBER.sub("#", found).split()
    numbers = _NUMBER.findall(claimed), _NUMBER.findall(found)
    return words[0] == words[1] and all(map(_is_close, *numbers))


def _is_close(claimed: str, found: str) -> bool:
    decimals = len(claimed.partition(".")[2])
    if not decimals:
        return claimed == found
    return decimals == len(found.partition(".")[2]) and abs(float(claimed) - float(found)) < 1.5 * 10**-decimals


def shortened(found: list[str], claimed: Sequence[str]) -> list[str]:
    """Leave out as much of the printed lines as the page does."""
    if LEFT_OUT not in claimed:
        return found
    start = claimed.index(LEFT_OUT)
    after = len(claimed) - start - 1
    if len(found) <= start + after:
        return found
    return [*found[:start], LEFT_OUT, *(found[len(found) - after :] if after else [])]


def runs(page: str) -> Iterator[tuple[Transcript, list[str] | None]]:
    """Yield each command of a page's text with what it prints, run in the current folder."""
    for block in _BLOCK.findall(page):
        for transcript in transcripts(block):
            yield transcript, printed(transcript.command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="put what was printed in place")
    options = parser.parse_args()
    wrong = 0
    for page in (path.resolve() for path in options.pages):
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            for claimed, found in runs(text):
                if found is None or agree(claimed.output, found):
                    continue
                wrong += 1
                new = Transcript(claimed.command, tuple(shortened(found, claimed.output)))
                print(f"{page.name}:\n{new}\n", file=sys.stderr)
                text = text.replace(str(claimed), str(new), 1)
        if options.write:
            page.write_text(text, encoding="utf-8")
    return int(wrong > 0 and not options.write)


if __name__ == "__main__":
    sys.exit(main())
