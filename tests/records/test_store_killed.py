"""A run that is killed at any moment leaves the old record or the new one, whole."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# Forks a child for every event in which Python touches the folder (opening, renaming, deleting, changing a mode),
# kills it there, and looks at what is left. From each different thing that was left, a second save is killed too.
KILLED = textwrap.dedent(
    """
    import hashlib, os, shutil, signal, sys
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

    def killed_at(event, record):
        child = os.fork()
        if child == 0:
            count = 0
            def hook(name, arguments):
                nonlocal count
                if any(as_text(value).startswith(str(folder)) for value in arguments):
                    count += 1
                    if count == event:
                        os.kill(os.getpid(), signal.SIGKILL)
            sys.addaudithook(hook)
            save_run(record, folder, overwrite=True)
            os._exit(0)
        return os.waitpid(child, 0)[1] == signal.SIGKILL

    def as_text(value):
        return os.fspath(value) if isinstance(value, str | os.PathLike) else ""

    def look(allowed):
        found = sb.load_run(folder)
        number = float(found.command)
        assert number in allowed, (number, allowed)
        assert (found.items["cosine"] == number).all(), "the items of another record"
        return number

    def state():
        files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        return tuple((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files)

    def copy_to(source, target):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)

    save_run(records[0], folder)
    copy_to(folder, root / "old")
    states, event, outcomes = {}, 1, set()
    while True:
        copy_to(root / "old", folder)
        killed = killed_at(event, records[1])
        outcomes.add(look({0, 1}))
        if not killed:
            break
        if state() not in states:
            states[state()] = root / f"state{len(states)}"
            copy_to(folder, states[state()])
        event += 1
    assert outcomes == {0, 1}
    second = 0
    for left in [*states.values()][: int(sys.argv[2])]:
        copy_to(left, folder)
        first, event = look({0, 1}), 1
        while killed_at(event, records[2]):
            look({first, 2})
            copy_to(left, folder)
            event += 1
            second += 1
        look({2})
        names = sorted(path.name for path in folder.iterdir())
        assert names == [".lock", "items.parquet", "run.json"], names
    print(len(states), event, second)
    """
)


TWO_WRITERS = textwrap.dedent(
    """
    import os, sys

    import numpy as np
    import stsbench as sb
    from stsbench.records.store import save_run

    folder = sys.argv[1]
    once = sb.Intervals(None)
    data = sb.evaluate(lambda sentences: np.ones((len(sentences), 2)), "sample", intervals=once)
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            items = data.items.assign(cosine=float(number))
            for _ in range(20):
                record = data.model_copy(update={"command": str(number)})
                save_run(record.with_items(items), folder, overwrite=True)
            os._exit(0)
        children.append(child)
    print([os.waitpid(child, 0)[1] for child in children])
    found = sb.load_run(folder)
    assert (found.items["cosine"] == float(found.command)).all()
    """
)


@needs_fork
@pytest.mark.parametrize("killed_again", [1, pytest.param(99, marks=pytest.mark.long)])
def test_a_save_killed_at_any_event_and_one_killed_after_that_leave_a_whole_record(
    killed_again: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path), str(killed_again)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    states, events, kills = map(int, done.stdout.split())
    assert states >= 3
    assert events >= 10
    assert kills >= 10 * min(killed_again, states)


@needs_fork
def test_two_writers_at_once_leave_the_record_of_one_of_them(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", TWO_WRITERS, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == [
        ".lock",
        "items.parquet",
        "run.json",
    ]
