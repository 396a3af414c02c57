"""Run a script that says `import senteval`: `python -m stsbench.compat.senteval [--results simcse] script.py`."""

import os
import runpy
import sys
from pathlib import Path

import stsbench.compat.senteval
from stsbench.base.errors import UserError
from stsbench.compat.senteval import engine, utils

_USAGE = "usage: python -m stsbench.compat.senteval [--results {senteval,simcse}] script.py [its arguments]"


def main(arguments: list[str]) -> int:
    """Run a script with this package as its `senteval`; return the exit code."""
    if arguments[:1] == ["--results"] and len(arguments) > 1:
        os.environ[engine.VARIABLE] = arguments[1]
        arguments = arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write(_USAGE + "\n")
        return 2
    script = Path(arguments[0])
    if not script.is_file():
        sys.stderr.write(f"there is no script {script}.\n")
        return 2
    sys.modules |= {
        "senteval": stsbench.compat.senteval,
        "senteval.engine": engine,
        "senteval.utils": utils,
    }
    sys.argv = arguments
    sys.path[0] = str(script.resolve().parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
