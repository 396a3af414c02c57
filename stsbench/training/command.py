"""`stsbench train`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from stsbench.cli.groups import expand
from stsbench.cli.options import LARGEST_SEED, DataDirs, Output, names, new_folder
from stsbench.cli.output import (
    Bars,
    print_data,
    print_lines,
    print_notes,
    print_result,
    print_table,
    progress_bars,
)


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
        typer.Option(help="Resume the training in this folder, bit by bit; needs none of the options above."),
    ] = None,
    device: Annotated[str, typer.Option(help="The device: `auto`, `cpu`, `cuda` or `mps`.")] = "auto",
    data_dirs: DataDirs = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
    wandb: Annotated[bool, typer.Option("--wandb", help="Also log to Weights & Biases.")] = False,
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
        return
    if print_:
        _print_recipe(recipe or "demo", overrides or ())
        return
    from stsbench.records.provenance import command_line
    from stsbench.training.log import percent
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
            tensorboard=tensorboard,
            wandb=wandb,
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


def _print_recipes(output: Output) -> None:
    from stsbench.render.table import Table
    from stsbench.training.recipe_files import recipe_list

    recipes = recipe_list()
    print_table(Table(recipes), output)


def _print_recipe(name: str, overrides: list[str] | tuple[()]) -> None:
    from stsbench.training.recipe import remarks_on_tests, tasks_sentence, traceable_sentence
    from stsbench.training.recipe_files import as_yaml, read_recipe

    recipe = read_recipe(name, overrides)
    remarks = [*filter(None, (traceable_sentence(recipe), tasks_sentence(recipe))), *remarks_on_tests(recipe)]
    print_data("".join(f"# {sentence}\n" for sentence in remarks) + as_yaml(recipe))


def _listener(bars: Bars, *, quiet: bool) -> Callable[[dict[str, Any]], None]:
    """Show loss, dev score and the best score beside the bar; in a log, print a line for each dev score."""
    latest: dict[str, Any] = {}

    def listen(line: dict[str, Any]) -> None:
        if not bars.are_shown:
            if not quiet and line["kind"] == "dev" and line["dev"] is not None:
                print_notes(_dev_line(line))
            return
        latest.update({name: line[name] for name in ("loss", "dev", "best", "best_step") if name in line})
        if line["kind"] == "train":
            latest["speed"] = line["time"]["tokens_per_second"]
        bars.describe("training", _description(latest))

    return listen


def _description(latest: dict[str, Any]) -> str:
    parts = []
    if latest.get("loss") is not None:
        parts.append(f"loss {latest['loss']:.3g}")
    if latest.get("dev") is not None:
        parts.append(f"dev {100 * latest['dev']:.2f}")
    if latest.get("best") is not None:
        parts.append(f"best {100 * latest['best']:.2f} at {latest['best_step']}")
    if "speed" in latest:
        parts.append(f"{latest['speed']:,.0f} tokens/s")
    return ", ".join(parts)


def _dev_line(line: dict[str, Any]) -> str:
    from stsbench.training.log import percent

    best = f", best {100 * line['best']:.2f} at step {line['best_step']}" if "best" in line else ""
    heads = "".join(
        f"; {name} {measure} {percent(score)}"
        for name, scores in line.get("tasks", {}).items()
        for measure, score in scores.items()
    )
    return f"step {line['step']}: dev {100 * line['dev']:.2f}{best}{heads}"
