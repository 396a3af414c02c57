"""Provenance: how a record was made, without names of users and machines."""

import getpass
from pathlib import Path

import pytest

from stsbench.records.provenance import command_line, environment, now, redact


@pytest.fixture
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")


@pytest.mark.usefixtures("_at_home")
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("/home/ada/models/a", "~/models/a"),
        ("see /home/ada.", "see ~."),
        ("in /home/ada, which", "in ~, which"),
        ("('/home/ada')", "('~')"),
        ("--data=/home/ada/x.tsv", "--data=~/x.tsv"),
        ("-o/home/ada/x", "-o~/x"),
        ("/home/ada:/home/bob", "~:/home/..."),
        ("/home/adam/x and /home/ada-lab/x", "/home/.../x and /home/.../x"),
        ("/Users/grace/x", "/Users/.../x"),
        (r"C:\Users\grace\x", r"C:\Users\...\x"),
        ("/scratch/ada/models", "/scratch/.../models"),
        ("/scratch/ada", "/scratch/..."),
        ("/scratch/adam/ada.txt", "/scratch/adam/ada.txt"),
        ("ada/sentence-model", "ada/sentence-model"),
        ("an adage of adamant ada", "an adage of adamant ada"),
        ("caf\udce9.tsv", "caf\\udce9.tsv"),
    ],
)
def test_homes_and_user_names_in_paths_are_redacted_and_nothing_else(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.usefixtures("_at_home")
def test_a_command_line_can_be_typed_again() -> None:
    arguments = ["/home/ada/.venv/bin/stsbench", "run", "-m", "/home/ada/my model", "--prompt", "query: "]
    assert command_line(arguments) == "stsbench run -m '~/my model' --prompt 'query: '"
    assert command_line([]) == ""


def test_the_environment_has_versions_and_threads_but_no_machine() -> None:
    found = environment()
    assert found["packages"]["numpy"].count(".") == 2
    assert set(found) == {"python", "platform", "packages", "threads"}
    assert len(found["platform"].split()) == 2
    assert now().endswith("+00:00")
