"""Run a script that says `import senteval`: `python -m stsbench.compat.senteval script.py its own arguments`."""

import argparse
import os
import re
import runpy
import sys
from pathlib import Path

import stsbench.compat.senteval
from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.compat.senteval import engine, utils
from stsbench.compat.senteval.batches import SEEN
from stsbench.compat.senteval.surroundings import supply_removed_calls

# What models that a script defines itself meet in Transformers 5: `init_weights` in the place of `post_init`, and
# tensors made in `__init__`, which is now called before there is memory for them.
_OF_TRANSFORMERS_4 = ("all_tied_weights_keys", "meta tensor")

_MODULES = {"senteval": stsbench.compat.senteval, "senteval.engine": engine, "senteval.utils": utils}


def main(arguments: list[str]) -> int:
    """Run a script with this package as its `senteval`; return the exit code."""
    try:
        typed = _parser().parse_args(arguments)
        _run(typed.script, typed.arguments, results=typed.results, splits=typed.splits, cache=typed.cache)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        if SEEN.handed:
            sys.stderr.write(f"{SEEN.sentence()}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stsbench.compat.senteval",
        description="Run a script that says `import senteval` with stsbench in SentEval's place.",
    )
    parser.add_argument(
        "--results",
        metavar="{" + ",".join(engine.RESULTS) + "}",
        help="the shape of results (default: both, each computed when it is read)",
    )
    parser.add_argument(
        "--splits",
        metavar="test[,dev,train]",
        help="the splits of STSBenchmark and SICKRelatedness that there are (default: all, test encoded at once "
        "and the others where they are read)",
    )
    parser.add_argument("--cache", action="store_true", help="encode no sentence again that the batcher has seen")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")
    return parser


def _run(script: Path, arguments: list[str], *, results: str | None, splits: str | None, cache: bool) -> None:
    if results is not None:
        if results not in engine.RESULTS:
            raise UserError(f"--results is {results!r}: {suggestion(results, engine.RESULTS)}")
        os.environ[engine.VARIABLE] = results
    if splits is not None:
        engine.splits_of(splits)
        os.environ[engine.SPLITS_VARIABLE] = splits
    if cache:
        os.environ[engine.CACHE_VARIABLE] = "1"
    if not script.is_file():
        raise UserError(f"there is no script {script}.")
    sys.modules |= _MODULES
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.resolve().parent)
    supply_removed_calls()
    try:
        runpy.run_path(str(script), run_name="__main__")
    except ModuleNotFoundError as error:
        raise UserError(_missing(script, str(error.name))) from error
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        if not any(sign in str(error) for sign in _OF_TRANSFORMERS_4):
            raise
        raise UserError(_older(script, error)) from error


def _older(script: Path, error: Exception) -> str:
    import transformers

    requirements = script.parent / "requirements.txt"
    lines = requirements.read_text(encoding="utf-8", errors="replace").split() if requirements.is_file() else []
    asked = next((line for line in lines if re.match(r"transformers[=<>~!]", line)), "")
    version = f"{asked} ({requirements})" if asked else "transformers<5"
    return (
        f"{script} makes its model as Transformers 4 did, and {transformers.__version__}, which stsbench needs, "
        f"cannot run it ({str(error).partition(chr(10))[0].rstrip('.')}): run it with {version} in an environment "
        "of its own, and score the vectors that it saves there with `stsbench run --vectors`."
    )


def _missing(script: Path, module: str) -> str:
    if module.startswith("senteval."):
        return (
            f"{script} imports {module}, a part of SentEval that stsbench has not: "
            "there are senteval.engine and senteval.utils."
        )
    return f"{script} needs the module {module}, which is not installed here."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
