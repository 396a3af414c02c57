"""The options by which every command loads a model and finds data, said once."""

from pathlib import Path
from typing import Annotated

from typer import Option

_MODEL, _DATA, _RUN = "Model", "Data", "Run"

Prompt = Annotated[
    str | None, Option(help="Text before every sentence. Default: the checkpoint's own.", rich_help_panel=_MODEL)
]
Precision = Annotated[str, Option(help="`fp32`, `bf16` or `fp16`.", rich_help_panel=_MODEL)]
Device = Annotated[str, Option(help="`auto`, `cpu`, `cuda` or `mps`.", rich_help_panel=_MODEL)]
Revision = Annotated[str | None, Option(help="Branch, tag or commit on the Hub.", rich_help_panel=_MODEL)]
TrustRemoteCode = Annotated[
    bool, Option("--trust-remote-code", help="Let code from the checkpoint run.", rich_help_panel=_MODEL)
]
Sentences = Annotated[Path | None, Option(help="The sentences of --vectors, one a line.", rich_help_panel=_MODEL)]
DataDirs = Annotated[
    list[Path] | None,
    Option("--data-dir", help="Look for data here first. Repeatable.", rich_help_panel=_DATA),
]
NoCache = Annotated[
    bool, Option("--no-cache", help="Neither read nor write the embedding cache.", rich_help_panel=_RUN)
]
