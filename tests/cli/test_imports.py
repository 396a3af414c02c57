"""What commands load: no torch where all vectors are cached."""

import json
import subprocess
import sys
from pathlib import Path

from stsbench.scoring.evaluate import evaluate

HEAVY = ("torch", "transformers", "sklearn", "matplotlib")

# One process for all: what an earlier command loads, a later one may.
SCRIPT = """
import json, sys
from stsbench.cli.app import main

loaded = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["stsbench", *arguments]
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    loaded.append([code, [name for name in HEAVY if name in sys.modules]])
print("LOADED", json.dumps(loaded))
"""


def test_a_cached_run_and_what_reads_it_load_no_torch(tiny_bert: Path, tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    evaluate(tiny_bert, "sample", out=run)
    evaluate(tiny_bert, "sample", dimensions=8, out=other)
    commands = [
        ["show", str(run)],
        ["check", str(run), "--baseline", str(run)],
        ["run", "--model", str(tiny_bert), "--tasks", "sample", "--out", str(tmp_path / "again")],
        ["compare", str(run), str(other)],
        ["length-bias", str(run)],
    ]
    script = f"HEAVY = {HEAVY!r}\n{SCRIPT}"
    ended = subprocess.run(
        [sys.executable, "-c", script, json.dumps(commands)], capture_output=True, text=True, check=True
    )
    loaded = json.loads(ended.stdout.rpartition("LOADED ")[2])
    again = json.loads((tmp_path / "again" / "run.json").read_text(encoding="utf-8"))
    assert again["encoding"]["encoded"] == 0
    assert loaded == [[0, []]] * len(commands)


def test_to_show_and_to_check_a_run_loads_nothing_that_encodes(tiny_bert: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    evaluate(tiny_bert, "sample", out=run)
    names = ("stsbench.encoders.plan", "stsbench.encoders.network", "stsbench.scoring.measure", "yaml")
    commands = [["show", str(run)], ["check", str(run), "--baseline", str(run)]]
    script = f"HEAVY = {names!r}\n{SCRIPT}"
    ended = subprocess.run(
        [sys.executable, "-c", script, json.dumps(commands)], capture_output=True, text=True, check=True
    )
    assert json.loads(ended.stdout.rpartition("LOADED ")[2]) == [[0, []]] * 2
