"""Experiments in this process, which has torch loaded, and what two of them are compared by."""

import contextlib
import json
from typing import Any

import pytest

from stsbench.sweeps import sweep as verb
from stsbench.sweeps.run_job import main
from stsbench.sweeps.sweep import Running, Work


class InThisProcess:
    """An executor that runs units one after the other in this process."""

    places = 1

    def __init__(self):
        self.ran: list[str] = []

    def start(self, work):
        """Runs units to their ends."""
        self.ran += [item.unit for item in work]
        codes = list(map(run_here, work))
        return [Running(lambda code=code: code, lambda: None) for code in codes]


def run_here(work):
    """Do a unit in this process; what it prints is its log."""
    import torch

    threads = torch.get_num_threads()
    work.log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            work.log.open("w", encoding="utf-8") as log,
            contextlib.redirect_stderr(log),
            pytest.MonkeyPatch.context() as patched,
        ):
            # Where data is looked for is told to a process of its own by its environment.
            patched.setenv("STSBENCH_DATA", work.environment.get("STSBENCH_DATA", ""))
            return main([str(work.folder), work.unit])
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def in_this_process():
    """Run units in this process; yield the list of those that ran."""
    executor = InThisProcess()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Work, "__call__", run_here)
        patched.setattr("stsbench.sweeps.sweep._SECONDS_BETWEEN", 0)
        # The dev curve of each training takes as long as its two steps do.
        patched.setattr("stsbench.training.train.save_figure", lambda *_: None)
        patched.setattr(verb, "executor_of", lambda *_, **__: executor)
        yield executor.ran


@pytest.fixture
def serial():
    """Run units in this process; return the list of those that ran."""
    with in_this_process() as ran:
        yield ran


def contents(folder):
    """Return what the jobs of an experiment came to, without times and what depends on them.

    The log's lines without `time`; records without when, how long, and how much went through the model, which is a
    cost as seconds are: what was in the cache did not. Tables as they are.
    """
    found: dict[str, Any] = {}
    for path in sorted((folder / "jobs").rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name == "run.json":
            record = json.loads(path.read_text())
            for key in ("created", "seconds"):
                record.pop(key)
            for key in ("encoded", "tokens", "padded_tokens"):
                record["encoding"].pop(key)
            found[name] = record
        elif path.name == "job.json":
            about = json.loads(path.read_text())
            for key in ("times", "files", "digest"):
                about.pop(key)
            found[name] = about
        elif path.name == "log.jsonl":
            lines = map(json.loads, path.read_text().splitlines())
            found[name] = [{key: value for key, value in line.items() if key != "time"} for line in lines]
        elif path.is_file():
            found[name] = path.read_bytes()
    return found
