"""A process in which nothing but the base package is installed, as far as an import or its metadata can tell.

    python tests/support/without_extras.py '[["show", "runs/a"], ...]'

runs the commands one after the other and prints, as JSON, how each ended and what it printed. What an earlier
command loaded, a later one may.
"""

import io
import json
import sys
from importlib.machinery import PathFinder
from typing import Any

from stsbench.base.errors import PACKAGES

MODULES = frozenset(module for packages in PACKAGES.values() for module in packages)
NAMES = frozenset(name.replace("_", "-") for packages in PACKAGES.values() for name in packages.values())


class _Base(PathFinder):
    """Finds what Python's own finder does, but for what the extras bring."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname.partition(".")[0] in MODULES else PathFinder.find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, *arguments, **options):
        for found in PathFinder.find_distributions(*arguments, **options):
            if str(found.metadata["Name"]).lower().replace("_", "-") not in NAMES:
                yield found


def hide_extras():
    """Leave this process with the base package; nothing of an extra may be loaded yet."""
    loaded = sorted(MODULES & sys.modules.keys())
    assert not loaded, f"{loaded} are loaded already"
    sys.meta_path = [_Base if finder is PathFinder else finder for finder in sys.meta_path]


def ended(arguments):
    """Run a command; return its exit code and what it printed."""
    from stsbench.cli.app import main

    sys.argv = ["stsbench", *arguments]
    streams = sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in streams)
    sys.stdout, sys.stderr = out, err
    code: Any = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    except Exception as error:
        code = f"{type(error).__name__}: {error}"
    finally:
        sys.stdout, sys.stderr = streams
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return {"code": code, "out": texts[0], "err": texts[1]}


if __name__ == "__main__":
    hide_extras()
    sys.stdout.write(json.dumps([ended(arguments) for arguments in json.loads(sys.argv[1])]))
