"""What a sweep costs: jobs side by side against one after the other, scheduling, and the tables of a hundred jobs.

    python benchmarks/sweep_speed.py [--recipe minilm-simcse] [--corpus sample] [--rows 400] [--run RUN]

Three parts. Four one-thread jobs on the pool of this machine, against the same jobs one after the other with two
threads each (goal: no longer than 1.15 times; on two cores). A hundred jobs that only wait, against the time they
wait (goal: what is on top is under 1 % of an experiment whose jobs take as long as one of the first part). The
tables, figures and the report of a hundred jobs, each a copy of one record (goal: 20 s); `--run` names a record of
all tasks, by default the sample is measured.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import stsbench as sb
from stsbench.records.store import save_run
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.folder import ExperimentFolder, write_finished
from stsbench.sweeps.jobs import jobs_of
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.sweep import Work


def side_by_side(options: argparse.Namespace, folder: Path) -> float:
    """Print how long four jobs take on the pool and one after the other; return the seconds of one job."""
    seconds: dict[int, float] = {}
    mean = 0.0
    for threads, workers in ((2, 1), (1, None)):
        experiment = Experiment(
            name=f"threads-{threads}",
            recipe=options.recipe,
            corpus=options.corpus,
            set={"corpus.rows": options.rows, "selection.task": "sample"},
            seeds=(1, 2, 3, 4),
            measure={"tasks": "sample"},
            threads=threads,
        )
        out = folder / experiment.name
        start = time.perf_counter()
        result = sb.sweep(experiment, out, workers=workers, device="cpu")
        seconds[threads] = time.perf_counter() - start
        assert isinstance(result, Sweep)
        assert result.is_complete, result.table()
        mean = float(result.frame["seconds"].mean())
    ratio = seconds[1] / seconds[2]
    print(f"four jobs: {seconds[1]:.1f} s on the pool, {seconds[2]:.1f} s one after the other: {ratio:.2f} times")
    return mean


def hundred(**changes: object) -> Experiment:
    """Return an experiment of twenty cells and five seeds."""
    rates = [round(0.01 + 0.02 * place, 2) for place in range(20)]
    return Experiment.model_validate(
        {
            "name": "hundred",
            "recipe": "demo",
            "axes": {"views.key.rate": rates},
            "seeds": [1, 2, 3, 4, 5],
            "measure": {"tasks": "sample"},
            **changes,
        }
    )


def scheduling(wait: float, job_seconds: float, folder: Path) -> None:
    """Print what is on top of a hundred jobs that only wait."""
    start_really = Work.start

    def sleep(_: Work) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(["sleep", str(wait)], stdin=subprocess.PIPE, start_new_session=True)

    Work.start = sleep  # type: ignore[assignment, method-assign]
    try:
        start = time.perf_counter()
        sb.sweep(hundred(), folder / "waiting", workers=2)
        # The wait of the preparation, and of fifty pairs of jobs.
        on_top = time.perf_counter() - start - 51 * wait
    finally:
        Work.start = start_really  # type: ignore[method-assign]
    share = on_top / (50 * job_seconds) if job_seconds else float("nan")
    print(
        f"100 jobs: {on_top:.2f} s of scheduling, {100 * share:.2f} % of jobs of {job_seconds:.0f} s two at a time"
    )


def tables(run: Path | None, folder: Path) -> None:
    """Print how long the tables, figures and the report of a hundred jobs take."""
    record = (
        sb.evaluate(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], "sample")
        if run is None
        else sb.load_run(run)
    )
    experiment, place = hundred(), ExperimentFolder(folder / "done")
    jobs = jobs_of(experiment)
    place.claim(experiment, jobs)
    for number, job in enumerate(jobs):
        # Weights of their own, as seeds have.
        model = record.model.model_copy(update={"name": job.folder, "weights_sha256": f"{number:064x}"})
        renamed = record.model_copy(update={"model": model})
        save_run(renamed, place.jobs / job.folder)
        write_finished(job, place.jobs / job.folder, {}, {"training": 1.0, "measuring": 1.0})
    start = time.perf_counter()
    result = sb.sweep(experiment, place.path)
    assert isinstance(result, Sweep)
    swept = time.perf_counter() - start
    sb.report(place.path, folder / "report")
    print(f"100 jobs: tables and figures {swept:.1f} s, report {time.perf_counter() - start - swept:.1f} s")


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="minilm-simcse")
    parser.add_argument("--corpus", default="sample")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--wait", type=float, default=1.0, help="seconds of a job that only waits")
    parser.add_argument("--run", type=Path, help="a run's folder; by default the sample is measured")
    parser.add_argument("--parts", default="pool,scheduling,tables")
    options = parser.parse_args()
    parts = options.parts.split(",")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        seconds = side_by_side(options, folder) if "pool" in parts else 60.0
        if "scheduling" in parts:
            scheduling(options.wait, seconds, folder)
        if "tables" in parts:
            tables(options.run, folder)


if __name__ == "__main__":
    main()
