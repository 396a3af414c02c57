"""`stsbench doctor`."""

import typer

from stsbench.cli.output import CsvFlag, JsonFlag, LatexFlag, MarkdownFlag, chosen_style, print_frame


def doctor(
    json: JsonFlag = False, csv: CsvFlag = False, markdown: MarkdownFlag = False, latex: LatexFlag = False
) -> None:
    """Look at environment, device, data, cache and versions; exit code 1 if something is broken.

    Example: `stsbench doctor`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    import pandas as pd

    from stsbench.workflows.doctor import doctor as workflow

    findings = workflow()
    print_frame(pd.DataFrame(findings), style)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(1)
