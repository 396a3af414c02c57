"""A warm parent: a process that has imported what commands import, and forks a child for each of them.

So a case costs what the command does, not what Python and its libraries take to start, and nothing that one case
does reaches another. As a script this file is that parent; `Parent` is how tests talk to it.
"""

import functools
import gc
import importlib
import importlib.metadata
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SECONDS = float(os.environ.get("FAULTS_SECONDS", "30"))
"""How long a case may take; what takes longer hangs. A machine that has other work needs more."""

_MORE_MEMORY = 4 * 2**30
"""Bytes that a child may ask for beyond what its parent holds."""

_HEAVY = (
    "torch",
    "transformers.models.bert.modeling_bert",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.linear_model",
    "seaborn",
    "jinja2",
)
"""What takes long to import and is imported at once; the rest is when a case asks for it first."""

_KEPT = (
    "stsbench.data.catalogue:data_sets",
    "stsbench.data.catalogue:sources",
    "stsbench.published.catalogue:tables",
    "stsbench.published.catalogue:rows",
    "stsbench.training.recipe_files:recipe_names",
    "stsbench.records.provenance:environment",
)
"""What each case would compute again from files of the package, which no trial damages: computed once."""


@dataclass(frozen=True)
class Case:
    """One command to run in a child.

    Attributes:
        arguments: of `stsbench`.
        here: the working folder.
        environment: all variables.
        fault: what goes wrong meanwhile, as `injection.install` takes it.
        is_nobody: whether root's right to read and write everything is given up first.
        function: `module:name` to call with the arguments, instead of `stsbench`.
        seconds: that it may take.
    """

    arguments: tuple[str, ...]
    here: str
    environment: dict[str, str]
    fault: dict[str, Any] = field(default_factory=dict)
    is_nobody: bool = False
    function: str = ""
    seconds: float = SECONDS


@dataclass(frozen=True)
class Ended:
    """How a case ended.

    Attributes:
        code: the exit code; of a signal that killed it the number, negative.
        out: what it printed, and `err` what it told.
        is_hung: whether it took too long, and was killed.
        seconds: that it took.
        events: file operations that were counted, where a fault was to happen at one of them.
        modules: that it imported and the parent had not.
    """

    code: int
    out: str
    err: str
    is_hung: bool
    seconds: float
    events: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


class Parent:
    """The warm parent, from outside: start it, ask it to run cases, close it."""

    def __init__(self) -> None:
        environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, case: Case) -> Ended:
        """Run one case; the next ones find imported what it imported."""
        (ended,) = self.race([case])
        if ended.modules:
            self._ask({"import": ended.modules})
        return ended

    def race(self, cases: Sequence[Case]) -> list[Ended]:
        """Run several cases at once."""
        return [Ended(**told) for told in self._ask({"cases": [asdict(case) for case in cases]})]

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Arguments may hold halves of characters: JSON spells them out.
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def serve() -> None:
    """Answer questions from standard input, a line each, until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    # What a library prints while it is imported is no answer.
    os.dup2(2, 1)
    _import(_HEAVY)
    _prepare()
    for line in sys.stdin:
        question = json.loads(line)
        if "import" in question:
            _import(question["import"])
            answer: Any = None
        else:
            answer = [asdict(ended) for ended in _race([Case(**case) for case in question["cases"]])]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _import(names: Sequence[str]) -> None:
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
    # Children need not go over what is here when they collect garbage, and so copy its pages.
    gc.collect()
    gc.freeze()


def _prepare() -> None:
    """Fill what libraries and stsbench keep for a process's life and that is the same in all."""
    importlib.metadata.version = functools.cache(importlib.metadata.version)
    for place in _KEPT:
        module, _, name = place.partition(":")
        getattr(importlib.import_module(module), name)()
    from matplotlib.figure import Figure
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    get_checkpoint_conversion_mapping("bert")
    # Nobody answers (see `World.case`), however long one waits before asking again.
    importlib.import_module("stsbench.data.fetch").PAUSE = 0.0
    figure = Figure(layout="constrained")
    figure.subplots().plot([0, 1], label="1")
    for kind in ("png", "svg"):
        figure.savefig(io.BytesIO(), format=kind)
    gc.freeze()


def _race(cases: Sequence[Case]) -> list[Ended]:
    with tempfile.TemporaryDirectory(prefix="stsbench-faults-") as folder:
        papers = [Path(folder) / str(number) for number in range(len(cases))]
        # Pipes and not files: a case may have the size of files limited.
        outs, errs = ([_Drain() for _ in cases] for _ in range(2))
        start, go = os.pipe()
        children = {}
        began = time.monotonic()
        for number, case in enumerate(cases):
            papers[number].mkdir()
            child = os.fork()
            if child == 0:
                os.close(go)
                os.read(start, 1)  # until the parent closes its end, when all are there
                os.close(start)
                _be(case, papers[number], outs[number].inlet, errs[number].inlet)
            children[child] = number
            os.close(outs[number].inlet)
            os.close(errs[number].inlet)
        os.close(start)
        os.close(go)
        ended: dict[int, Ended] = {}
        hung: set[int] = set()
        while children:
            took = time.monotonic() - began
            for drain in (*outs, *errs):
                drain.empty()
            for child, number in list(children.items()):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    del children[child]
                    _end_group(child)
                    told = (outs[number].close(), errs[number].close())
                    ended[number] = _ended(papers[number], told, status, number in hung, took)
                elif took > cases[number].seconds:
                    hung.add(number)
                    _end_group(child)
            time.sleep(0.003)
        return [ended[number] for number in range(len(cases))]


def _end_group(child: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


class _Drain:
    """A pipe that a child writes into, and what came out of it."""

    def __init__(self) -> None:
        self._outlet, self.inlet = os.pipe()
        os.set_blocking(self._outlet, False)
        self._content = bytearray()

    def empty(self) -> None:
        with suppress(BlockingIOError, OSError):
            while content := os.read(self._outlet, 65536):
                self._content += content

    def close(self) -> str:
        self.empty()
        os.close(self._outlet)
        return self._content.decode("utf-8", errors="backslashreplace")


def _ended(paper: Path, told: tuple[str, str], status: int, is_hung: bool, seconds: float) -> Ended:
    def lines(name: str) -> tuple[str, ...]:
        path = paper / name
        return tuple(path.read_text("utf-8").splitlines()) if path.exists() else ()

    code = os.waitstatus_to_exitcode(status)
    return Ended(code, *told, is_hung, round(seconds, 3), lines("events"), lines("modules"))


def _be(case: Case, paper: Path, out: int, err: int) -> None:
    """Be the child: run the case and end the process."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        code = _run(case, paper)
    except BaseException:  # the harness's own mistake
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _run(case: Case, paper: Path) -> int:
    known = set(sys.modules)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False, errors=errors)  # noqa: SIM115
        for number, mode, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))
    )
    os.chdir(case.here)
    os.environ.clear()
    os.environ.update(case.environment)
    sys.argv = ["stsbench", *case.arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path("/proc/self/statm").open() as stream:
        held = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + _MORE_MEMORY, resource.RLIM_INFINITY))
    from harness.injection import give_up_rights, install

    if case.is_nobody:
        give_up_rights()
    log = paper / "events"
    if case.fault:
        install(case.fault, case.here, log)
    module, _, name = (case.function or "stsbench.__main__:main").partition(":")
    code = _end_of(getattr(importlib.import_module(module), name), case.arguments if case.function else ())
    if not case.fault:
        names = [name for name in sys.modules if name not in known and not name.startswith("__")]
        (paper / "modules").write_text("\n".join(names), encoding="utf-8")
    return code


def _end_of(call: Any, arguments: Sequence[str]) -> int:
    """Call a function and return the exit code that Python would end with."""
    try:
        call(*arguments)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except KeyboardInterrupt:
        traceback.print_exc()
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return code


if __name__ == "__main__":
    serve()
