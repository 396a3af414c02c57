"""How long a report takes and how large it is: of one run, and of fifty.

    python benchmarks/report_speed.py [--run RUN] [--runs 50]

The fifty are copies of one record under other names; without `--run` it is measured on the sample first. Analyses
and comparisons are made for the single run alone, as `stsbench report` does. Prints seconds and megabytes (goals:
fifty records under 20 s, the folder of one under 5 MB).
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import stsbench as sb


def report(runs: list[Path], folder: Path) -> tuple[float, float]:
    """Return how many seconds a report takes, reading the records included, and its megabytes."""
    start = time.perf_counter()
    page = sb.report(runs, folder)
    seconds = time.perf_counter() - start
    return seconds, sum(path.stat().st_size for path in page.parent.rglob("*") if path.is_file()) / 1e6


def renamed(record: sb.RunRecord, name: str, folder: Path) -> Path:
    folder.mkdir(parents=True)
    model = record.model.model_copy(update={"name": name})
    text = json.dumps(record.model_copy(update={"model": model}).to_dict())
    (folder / "run.json").write_text(text, encoding="utf-8")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a run's folder; by default the sample is measured")
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run = options.run or folder / "sample"
        if options.run is None:
            sb.evaluate(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], "sample", out=run)
        record = sb.load_run(run)
        copies = [renamed(record, f"model {n}", folder / "runs" / str(n)) for n in range(options.runs)]
        for runs, name in (([run], "one"), (copies, "many")):
            seconds, size = report(runs, folder / name)
            print(f"{len(runs):2} runs {seconds:6.1f} s {size:5.2f} MB")


if __name__ == "__main__":
    main()
