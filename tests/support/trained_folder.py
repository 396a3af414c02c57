"""What trainings that are to be the same are compared by."""

import json
from pathlib import Path


def left(folder: Path) -> tuple[dict[str, bytes], list[dict[str, object]]]:
    """Return the weights of the published checkpoint and of the last ones, and the log without times."""
    weights = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return weights, [{name: value for name, value in line.items() if name != "time"} for line in log]
