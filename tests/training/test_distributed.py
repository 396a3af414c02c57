"""Two processes on a CPU give the loss, gradients, weights and queue of one."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import stsbench as sb

WORKER = textwrap.dedent(
    """
    import json
    import sys
    from pathlib import Path

    import numpy as np, torch
    from stsbench.training.base import find_base
    from stsbench.data.corpus import read_rows
    from stsbench.training.distributed import join_world
    from stsbench.training.labelled import read_tasks
    from stsbench.training.recipe import read_recipe
    from stsbench.training.batches import open_store
    from stsbench.training.trainer import Trainer

    recipe_file, corpus, tokens, result, cases = sys.argv[1:]
    world, device = join_world("cpu")
    for case, overrides in json.loads(cases).items():
        recipe = read_recipe(recipe_file, ["dropout=0", *overrides])
        base = find_base(recipe, "cpu")
        rows = read_rows(Path(corpus), recipe.corpus.columns)
        meaning = {"columns": recipe.corpus.columns}
        if not world.leads:  # the first process builds the store that the others find
            world.wait()
        store = open_store(Path(tokens), meaning, rows, base.tokenizer, limit=10)
        if world.leads:
            world.wait()
        trainer = Trainer(recipe, store, base, world, device, tasks=read_tasks(recipe))

        batch = trainer.reader(np.arange(recipe.optimiser.batch), "now")
        loss = sum(term(batch, lambda value: value) for term in trainer.terms)
        trainer.world.add_up_gradients(trainer.descent.parameters)
        gradients = {n: p.grad.clone() for n, p in trainer.model.named_parameters() if p.grad is not None}
        trainer.model.zero_grad()
        losses = [float(trainer.step(number)[0]) for number in range(trainer.timetable.steps)]
        for name, head in trainer.modules.items():
            if name.startswith("tasks."):
                trainer.model.register_module(name.replace(".", " "), head)  # compared as the other weights are
        torch.save(
            {
                "loss": float(loss),
                "losses": losses,
                "gradients": gradients,
                "weights": trainer.model.state_dict(),
                "queue": None if trainer.queue is None else trainer.queue.columns(),
            },
            f"{result}.{case}.{world.rank}",
        )
    """
)

CASES = {
    "simcse": (),
    "esimcse": (
        "views.key={kind: subword-repetition, rate: 0.5}",
        "negatives.queue.size=20",
        "target.decay=0.9",
        "head=dense-tanh",
    ),
    "mlm": ("objective.mlm.weight=0.1", "optimiser.gradient_cache=true", "optimiser.chunk=2"),
}
OUTCOMES = (("of1", 0), ("of2", 0), ("of2", 1))


def surroundings() -> dict[str, str]:
    """Return the variables with a free port for the processes to meet at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Three processes with threads that wait for each other would take minutes on a small machine.
    return os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}


def launch(size: int, arguments: list[str]) -> list[subprocess.Popen[str]]:
    shared = surroundings() | {"WORLD_SIZE": str(size)}
    return [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments],
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_equal_one_with_the_joined_batch(recipe_file, corpus, tmp_path):
    # 41 rows: the last batch has one, so that one of the two processes has no share in it.
    lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)[:41]
    corpus.write_text("".join(lines), encoding="utf-8")
    places = [str(recipe_file), str(corpus), str(tmp_path / "tokens")]
    # 7 of 15 rows in a batch: the last batch has one row here, too.
    table = "text\tlabel\n" + "".join(f"{line.strip()}\t{len(line) % 3}\n" for line in lines[:15])
    (tmp_path / "mood.tsv").write_text(table, encoding="utf-8")
    dev = f"dev: {tmp_path / 'mood.tsv'}, train: {tmp_path / 'mood.tsv'}"
    labels = "columns: [text, label], classes: [0, 1, 2]"
    head = f"tasks.mood={{kind: classification, {dev}, {labels}, batch: 7, dropout: 0}}"
    cases = CASES | {"tasks": [head, "phases=[{takes: [mood, contrastive]}, {takes: [mood]}]"]}
    runs = [
        process
        for size in (1, 2)
        for process in launch(size, [*places, f"{tmp_path}/of{size}", json.dumps(cases)])
    ]
    for process in runs:
        _, errors = process.communicate(timeout=180)
        assert process.returncode == 0, errors
    for case in cases:
        one, first, second = (torch.load(tmp_path / f"{of}.{case}.{rank}") for of, rank in OUTCOMES)
        require_equal_trainings(one, first, second)


def require_equal_trainings(one, first, second):
    """Hold the outcomes of both of two processes against that of one."""
    for other in (first, second):
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-5)
        np.testing.assert_allclose(other["losses"], one["losses"], rtol=1e-3, atol=1e-6)
        assert other["gradients"].keys() == one["gradients"].keys()
        for name, gradient in one["gradients"].items():
            torch.testing.assert_close(other["gradients"][name], gradient, atol=1e-5, rtol=1e-4)
    for name, weight in first["weights"].items():
        assert torch.equal(weight, second["weights"][name]), name
        torch.testing.assert_close(weight, one["weights"][name], atol=2e-3, rtol=1e-3)
    if one["queue"] is not None:
        assert torch.equal(first["queue"], second["queue"])
        assert len(one["queue"]) == 20


# Imports once what both processes need; torchrun and accelerate import it in three.
FORKED = textwrap.dedent(
    """
    import os

    import torch, transformers.models.bert.modeling_bert
    from stsbench.cli.app import main
    from stsbench.training import train

    first = os.fork() != 0
    os.environ |= {"RANK": str(int(not first)), "LOCAL_RANK": str(int(not first)), "WORLD_SIZE": "2"}
    try:
        main()
    finally:
        if first:
            assert os.wait()[1] == 0
    """
)

# Without --multi_gpu, accelerate starts one process where there is no GPU.
ACCELERATE = "-m accelerate.commands.launch --multi_gpu --num_processes 2 --main_process_port 0 -m stsbench"

LAUNCHERS = {
    "forked": ["-c", FORKED],
    "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "stsbench"],
    "accelerate": ACCELERATE.split(),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher", ["forked", *(pytest.param(name, marks=pytest.mark.long) for name in ("torchrun", "accelerate"))]
)
def test_the_command_trains_with_two_processes_and_speaks_once(launcher, recipe_file, corpus, tmp_path):
    options = ["--corpus", str(corpus), "--out", str(tmp_path / "run"), "--set", "negatives.queue.size=20"]
    command = [*LAUNCHERS[launcher], "train", str(recipe_file), *options, "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True, timeout=300, env=surroundings()
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sample ") == 1
    assert done.stderr.count("2 processes share each batch") == 1
    assert done.stderr.count("checkpoint in") == 1
    record = sb.load_run(tmp_path / "run")
    again = sb.evaluate(str(tmp_path / "run"), "sample", use_cache=False)
    assert again.scores[0].value == record.scores[0].value
