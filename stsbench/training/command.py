"""`stsbench train`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from stsbench.cli.options import Output, any_seed, grouped, new_folder
from stsbench.cli.output import Bars, print_data, print_frame, print_result, progress_bars, say, tell


@grouped
def train(
    recipe: Annotated[
        str | None, Argument(help="A known recipe (see --list) or a YAML file.", show_default=False)
    ] = None,
    corpus: Annotated[
        str | None,
        Option(
            help="A sentence a line, or .csv, .tsv, .jsonl, .parquet; .gz and .zst too. Default: the recipe's."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", "-o", callback=new_folder, help="Folder of the training. Default: `runs/<recipe>`."),
    ] = None,
    base: Annotated[str | None, Option(help="Checkpoint to start from. Default: the recipe's.")] = None,
    seed: Annotated[
        int | None, Option(callback=any_seed, help="Of everything random. Default: the recipe's.")
    ] = None,
    set_: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="Change a value of the recipe. Repeatable.")
    ] = None,
    columns: Annotated[
        str | None, Option(help="Columns of the corpus to read, in order, with commas. Default: all.")
    ] = None,
    resume: Annotated[
        Path | None, Option(help="Go on with the training in this folder, to the same weights bit by bit.")
    ] = None,
    device: Annotated[str, Option(help="`auto`, `cpu`, `cuda` or `mps`.")] = "auto",
    data_dir: Annotated[
        list[Path] | None, Option("--data-dir", help="Look for the dev set here first. Repeatable.")
    ] = None,
    tensorboard: Annotated[bool, Option("--tensorboard", help="Write TensorBoard's files too.")] = False,
    wandb: Annotated[bool, Option("--wandb", help="Send the log to Weights & Biases too.")] = False,
    list_: Annotated[bool, Option("--list", help="List the known recipes and exit.")] = False,
    print_: Annotated[bool, Option("--print", help="Print the recipe in full and exit.")] = False,
    output: Output = Output(),
) -> None:
    """Train a sentence encoder by a recipe: SimCSE, ESimCSE, or your own YAML file.

    The folder holds the recipe in full, the log, and at the end the best checkpoint on the dev set (which
    Transformers and sentence-transformers load), its record, its card and the dev curve. A training that was
    stopped goes on with --resume. Several processes: `torchrun --nproc-per-node 2 -m stsbench train ...`.

    Examples:
    * `stsbench train demo`
    * `stsbench train minilm-esimcse --corpus wiki.txt --out runs/esimcse --seed 1`
    * `stsbench train esimcse-bert-base --corpus wiki1m_for_simcse.txt --set precision=bf16`
    * `stsbench train --list`
    * `stsbench train --resume runs/esimcse`
    """
    style, quiet = output.style, output.quiet
    if list_ or print_:
        from stsbench.render.fitting import fitted
        from stsbench.training.recipe_files import as_yaml, read_recipe, recipe_list
        from stsbench.training.remarks import remarks_on_tests, tasks_sentence, traceable_sentence

        if list_:
            recipes = recipe_list()
            print_frame(recipes if style in {"json", "csv"} else fitted(recipes, "what"), output)
        else:
            chosen = read_recipe(recipe or "demo", set_ or ())
            distance = traceable_sentence(chosen)
            said = [*filter(None, (distance, tasks_sentence(chosen))), *remarks_on_tests(chosen)]
            print_data("".join(f"# {sentence}\n" for sentence in said) + as_yaml(chosen))
        return
    from stsbench.records.provenance import command_line
    from stsbench.training.train import train as run_training

    with progress_bars(quiet=quiet) as progress:
        training = run_training(
            recipe,
            corpus,
            out,
            base=base,
            seed=seed,
            overrides=set_ or (),
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            resume=resume,
            device=device,
            data_dirs=data_dir or (),
            tensorboard=tensorboard,
            wandb=wandb,
            progress=progress,
            listeners=[_listener(progress, quiet=quiet)],
            notice=lambda sentence: tell(sentence, quiet=quiet),
            command=command_line(["stsbench", *sys.argv[1:]]),
        )
    if not training.leads:
        return
    if style == "terminal":
        task, score = training.recipe.selection.task, training.record.tasks[0].score
        say(f"{task} {100 * (score or 0):.2f} at step {training.best.step} of {training.steps}")
        for head in training.record.heads:
            say(f"{head.task} {head.measure} {_percent(head.score)} on {head.ndev:,} rows")
    else:
        print_result(training, output)
    tell(f"checkpoint in {training.folder}, dev curve in {training.folder / 'dev-curve.png'}", quiet=quiet)


def _listener(bars: Bars, *, quiet: bool) -> Callable[[dict[str, Any]], None]:
    """Show loss, dev score and the best so far behind the bar; without a screen, a line for each dev score."""
    seen: dict[str, Any] = {}

    def listen(line: dict[str, Any]) -> None:
        if not bars.are_shown:
            if not quiet:
                _tell_score(line)
            return
        seen.update({name: line[name] for name in ("loss", "dev", "best", "best_step") if name in line})
        if line["kind"] == "train":
            seen["speed"] = line["time"]["tokens_per_second"]
        bars.describe("training", _about(seen))

    return listen


def _about(seen: dict[str, Any]) -> str:
    parts = []
    if seen.get("loss") is not None:
        parts.append(f"loss {seen['loss']:.3g}")
    if seen.get("dev") is not None:
        parts.append(f"dev {100 * seen['dev']:.2f}")
    if seen.get("best") is not None:
        parts.append(f"best {100 * seen['best']:.2f} at {seen['best_step']}")
    if "speed" in seen:
        parts.append(f"{seen['speed']:,.0f} tokens/s")
    return ", ".join(parts)


def _tell_score(line: dict[str, Any]) -> None:
    if line["kind"] == "dev" and line["dev"] is not None:
        best = f", best {100 * line['best']:.2f} at step {line['best_step']}" if "best" in line else ""
        heads = "".join(
            f"; {name} {measure} {_percent(score)}"
            for name, scores in line.get("tasks", {}).items()
            for measure, score in scores.items()
        )
        tell(f"step {line['step']}: dev {100 * line['dev']:.2f}{best}{heads}")


def _percent(score: float | None) -> str:
    return "undefined" if score is None else f"{100 * score:.2f}"
