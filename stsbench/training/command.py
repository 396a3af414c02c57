"""`stsbench train`."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

from stsbench.base.options import Help
from stsbench.cli.options import Output
from stsbench.cli.output import Bars, print_data, print_result, print_table, progress_bars, say, tell
from stsbench.cli.verbs import Call, Verb
from stsbench.training.log import percent


def train(
    asked: Annotated[Call, Verb("stsbench.training.train:train", without=("command", "shared"))],
    list_: Annotated[bool, Help("List the known recipes and exit.")] = False,
    print_: Annotated[bool, Help("Print the recipe in full and exit.")] = False,
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
        from stsbench.render.formats import fitted
        from stsbench.render.table import Table
        from stsbench.training.recipe import remarks_on_tests, tasks_sentence, traceable_sentence
        from stsbench.training.recipe_files import as_yaml, read_recipe, recipe_list

        if list_:
            recipes = recipe_list()
            print_table(Table(recipes if style in {"json", "csv"} else fitted(recipes, "what")), output)
        else:
            chosen = read_recipe(asked.options.get("recipe", "demo"), asked.options.get("overrides", ()))
            distance = traceable_sentence(chosen)
            said = [*filter(None, (distance, tasks_sentence(chosen))), *remarks_on_tests(chosen)]
            print_data("".join(f"# {sentence}\n" for sentence in said) + as_yaml(chosen))
        return
    from stsbench.records.provenance import command_line

    with progress_bars(quiet=quiet) as progress:
        training = asked(
            progress=progress,
            listeners=[_listener(progress, quiet=quiet)],
            notice=lambda sentence: tell(sentence, quiet=quiet),
            command=command_line(["stsbench", *sys.argv[1:]]),
        )
    if not training.leads:
        return
    if style == "terminal":
        task, score = training.recipe.selection.task, training.record.scores[0].value
        say(f"{task} {100 * (score or 0):.2f} at step {training.best.step} of {training.steps}")
        for head in training.record.heads:
            say(f"{head.task} {head.measure} {percent(head.score)} on {head.ndev:,} rows")
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
            f"; {name} {measure} {percent(score)}"
            for name, scores in line.get("tasks", {}).items()
            for measure, score in scores.items()
        )
        tell(f"step {line['step']}: dev {100 * line['dev']:.2f}{best}{heads}")
