"""`stsbench train`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from stsbench.cli.options import LARGEST_SEED, DataDirs, Output, expand, names, new_folder
from stsbench.cli.output import (
    Bars,
    print_data,
    print_lines,
    print_next,
    print_notes,
    print_result,
    print_table,
    progress_bars,
)
from stsbench.training.log import of_tasks, percent


@expand
def train(
    recipe: Annotated[str | None, typer.Argument(help="A recipe's name, or a YAML file.")] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="The corpus: text, .csv, .tsv, .jsonl or .parquet (.gz, .zst); by default the recipe's."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", callback=new_folder, help="The folder to write; by default `runs/<recipe>`."),
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="The checkpoint to start from; by default the recipe's.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="The random seed; by default the recipe's.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the recipe. Repeatable."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="The corpus columns to read, in order, with commas; by default all.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Resume the training in this folder with identical results; needs none of the options above."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="The device: `auto`, `cpu`, `cuda` or `mps`.")] = "auto",
    data_dirs: DataDirs = None,
    list_: Annotated[bool, typer.Option("--list", help="List the known recipes and exit.")] = False,
    print_: Annotated[bool, typer.Option("--print", help="Print the full recipe and exit.")] = False,
    output: Output = Output(),
) -> None:
    """Train a sentence encoder from a recipe: SimCSE, ESimCSE, or your own YAML file.

    The folder gets the full recipe, the log, and at the end the best checkpoint on the dev set (loadable by
    Transformers and sentence-transformers) with its record, card and dev curve. Several processes:
    `torchrun --nproc-per-node 2 -m stsbench train ...`.

    Examples:
    * `stsbench train demo`
    * `stsbench train minilm-esimcse --corpus wiki.txt --out runs/esimcse --seed 1`
    * `stsbench train esimcse-bert-base --corpus wiki1m_for_simcse.txt --set precision=bf16`
    * `stsbench train --list`
    * `stsbench train --resume runs/esimcse`
    """
    if list_:
        _print_recipes(output)
        print_next(output, "train", "RECIPE")
        return
    if print_:
        _print_recipe(recipe or "demo", overrides or ())
        return
    from stsbench.records.parts import command_line
    from stsbench.training.train import train as train_encoder

    with progress_bars(quiet=output.quiet) as progress:
        training = train_encoder(
            recipe,
            corpus,
            out,
            base=base,
            seed=seed,
            overrides=overrides or (),
            columns=names(columns) or None,
            resume=resume,
            device=device,
            data_dirs=data_dirs or (),
            progress=progress,
            listeners=[_listener(progress, quiet=output.quiet)],
            notice=lambda sentence: print_notes(sentence, quiet=output.quiet),
            command=command_line(["stsbench", *sys.argv[1:]]),
        )
    if not training.leads:
        return
    if output.style == "terminal":
        task, score = training.recipe.selection.task, training.record.scores[0].value
        print_lines(f"{task} {100 * (score or 0):.2f} at step {training.best.step} of {training.steps}")
        for head in training.record.heads:
            print_lines(f"{head.task} {head.measure} {percent(head.score)} on {head.ndev:,} rows")
    else:
        print_result(training, output)
    curve = training.folder / "dev-curve.png"
    print_notes(f"checkpoint in {training.folder}, dev curve in {curve}", quiet=output.quiet)
    print_next(output, "run", "--model", training.folder, "--tasks", "sts")


def _print_recipes(output: Output) -> None:
    from stsbench.render.table import Table
    from stsbench.training.recipe import recipe_list

    print_table(Table(recipe_list()), output)


def _print_recipe(name: str, overrides: Sequence[str]) -> None:
    from stsbench.training.recipe import as_yaml, read_recipe, remarks_on_tests

    recipe = read_recipe(name, overrides)
    print_data("".join(f"# {sentence}\n" for sentence in remarks_on_tests(recipe)) + as_yaml(recipe))


def _listener(bars: Bars, *, quiet: bool) -> Callable[[dict[str, Any]], None]:
    latest: dict[str, Any] = {}

    def listen(line: dict[str, Any]) -> None:
        latest.update({name: line[name] for name in ("loss", "best", "best_step") if line.get(name) is not None})
        best = f"best {100 * latest['best']:.2f} at step {latest['best_step']}" if "best" in latest else ""
        if bars.are_shown:
            loss = f"loss {latest['loss']:.3g}" if "loss" in latest else ""
            bars.describe("training", ", ".join(filter(None, [loss, best])))
        elif not quiet and line["kind"] == "dev" and line["dev"] is not None:
            heads = [f"{name} {percent(score)}" for name, score in of_tasks(line)]
            scores = ", ".join(filter(None, [f"dev {100 * line['dev']:.2f}", best]))
            print_notes("; ".join([f"step {line['step']}: {scores}", *heads]))

    return listen
