"""Run a script with `import senteval`: `python -m stsbench.compat.senteval script.py its own arguments`."""

import argparse
import os
import runpy
import sys
from pathlib import Path

import stsbench.compat.senteval
from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.compat.senteval import engine, utils
from stsbench.compat.senteval.batches import SEEN

# Errors of a script's own model classes in Transformers 5: `init_weights` instead of `post_init`, and tensors
# created in `__init__`.
_OF_TRANSFORMERS_4 = ("all_tied_weights_keys", "meta tensor")

_MODULES = {"senteval": stsbench.compat.senteval, "senteval.engine": engine, "senteval.utils": utils}


def main(arguments: list[str]) -> int:
    """Runs a script with this package as its `senteval`; returns the exit code."""
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
        description="Run a script that contains `import senteval` with stsbench instead of SentEval.",
    )
    parser.add_argument(
        "--results",
        metavar="{" + ",".join(engine.RESULTS) + "}",
        help="the keys of results (default: both, each computed when it is read)",
    )
    parser.add_argument(
        "--splits",
        metavar="test[,dev,train]",
        help="the splits of STSBenchmark and SICKRelatedness (default: all; test is encoded first, the others "
        "when they are read)",
    )
    parser.add_argument("--cache", action="store_true", help="encode each sentence only once")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
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
        raise UserError(f"no script {script}: check the path.")
    sys.modules |= _MODULES
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.resolve().parent)
    engine.supply_removed_calls()
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

    return (
        f"{script} creates its model as Transformers 4 did, and version {transformers.__version__} cannot run it "
        f"({str(error).splitlines()[0].rstrip('.')}): run it with transformers<5 in another environment, save the "
        "vectors there, and score them with `stsbench run --vectors`."
    )


def _missing(script: Path, module: str) -> str:
    if module.startswith("senteval."):
        return f"{script} imports {module}, but stsbench replaces senteval.engine and senteval.utils only."
    return f"{script} needs the module {module}, which is not installed."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
