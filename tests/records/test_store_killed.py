"""A run that is killed at any moment leaves the old record or the new one, and the next save a whole one."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

RECORDS = """
    import os, shutil, signal, sys
    from pathlib import Path

    import numpy as np
    import stsbench as sb
    from stsbench.records.store import save_run

    root = Path(sys.argv[1])
    folder = root / "run"
    once = sb.Intervals(None)
    data = sb.evaluate(lambda sentences: np.ones((len(sentences), 2)), "sample", intervals=once)
    records = []
    for number in range(3):
        items = data.items.assign(cosine=float(number))
        records.append(data.model_copy(update={"command": str(number)}).with_items(items))

    def look(allowed, torn=False):
        found = sb.load_run(folder)
        number = float(found.command)
        assert number in allowed, (number, allowed)
        try:
            assert (found.items["cosine"] == number).all(), "the items of another record"
        except sb.UserError:
            # Killed between the two renames: the table of another record is recognised.
            assert torn
        return number

    def look_at_files():
        names = sorted(path.name for path in folder.iterdir())
        assert names == [".lock", "items.parquet", "run.json"], names
"""

# Forks a child for every event in which Python touches the folder (opening, renaming, deleting, a mode), kills it
# there, and saves another record after that.
KILLED = """
    def killed_at(event, record):
        child = os.fork()
        if child == 0:
            count = 0
            def hook(name, arguments):
                nonlocal count
                if any(str(value).startswith(str(folder)) for value in arguments):
                    count += 1
                    if count == event:
                        os.kill(os.getpid(), signal.SIGKILL)
            sys.addaudithook(hook)
            save_run(record, folder, overwrite=True)
            os._exit(0)
        return os.waitpid(child, 0)[1] == signal.SIGKILL

    save_run(records[0], folder)
    shutil.copytree(folder, root / "old")
    event, outcomes, killed = 0, set(), True
    while killed:
        shutil.rmtree(folder)
        shutil.copytree(root / "old", folder)
        event += 1
        killed = killed_at(event, records[1])
        outcomes.add(look({0, 1}, torn=True))
        save_run(records[2], folder, overwrite=True)
        look({2})
        look_at_files()
    assert outcomes == {0, 1}
    print(event)
"""

TWO_WRITERS = """
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            for _ in range(20):
                save_run(records[number], folder, overwrite=True)
            os._exit(0)
        children.append(child)
    print(*[os.waitpid(child, 0)[1] for child in children])
    look({0, 1})
    look_at_files()
"""


def printed(script: str, *arguments: object) -> list[int]:
    """Run a script in a process of its own; return the numbers that it prints."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(RECORDS + script), *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@needs_fork
def test_a_save_killed_at_any_event_leaves_a_record_and_the_next_save_a_whole_one(tmp_path: Path) -> None:
    (events,) = printed(KILLED, tmp_path)
    assert events >= 10


@needs_fork
def test_two_writers_at_once_leave_the_record_of_one_of_them(tmp_path: Path) -> None:
    assert printed(TWO_WRITERS, tmp_path) == [0, 0]
