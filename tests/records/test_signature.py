"""Signatures and provenance: what a score means and how it was made, without names of users."""

import getpass
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stsbench.base.errors import UserError
from stsbench.encoders.use import Use
from stsbench.records.parts import command_line, redact
from stsbench.records.signature import PROTOCOL_FIELDS, Signature, differing_fields, require_same_protocol

PLAIN = Signature(
    *("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91" + "0" * 58),
    Use(pooling="avg", max_length=256),
    version="0.1.0",
)
HOSTILE = ("a|b:c||d", "||", ":", "len3", "prompt:x|fp16", "two\nlines", "query: ", "übung — 文", "100%", "%7C")
hostile_text = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"])))


@given(
    **dict.fromkeys(("task", "split", "text", "fitted", "version"), hostile_text),
    use=st.builds(
        Use,
        pooling=hostile_text,
        prompt=hostile_text,
        template=hostile_text,
        backend=st.sampled_from(["torch", "openvino"]),
        precision=st.sampled_from(["fp32", "bf16", "fp16", "int8#1a2b"]),
        normalize=st.none() | st.booleans(),
        max_length=st.none() | st.integers(1, 10**6),
        dimensions=st.none() | st.integers(1, 10**6),
        whiten=st.none() | st.integers(0, 10**6),
    ),
)
def test_any_signature_reads_back_as_itself_from_one_line(**values: object) -> None:
    signature = replace(PLAIN, **values)
    text = str(signature)
    assert Signature.parse(text) == signature
    assert len(text.splitlines()) == 1
    assert text.partition("||") == (signature.protocol, "||", signature.model)


WRONG = (("||", "|"), ("fp32", "int4"), ("|stsbench:0.1.0", ""), ("text:", "txt:"), ("len256", "lenient"))


@pytest.mark.parametrize("text", ["", "STS16", f"{PLAIN}|more", *(str(PLAIN).replace(*wrong) for wrong in WRONG)])
def test_other_text_is_not_a_signature(text: str) -> None:
    with pytest.raises(ValueError, match="not a signature"):
        Signature.parse(text)


@pytest.mark.parametrize("name", PROTOCOL_FIELDS)
def test_two_scores_compare_only_if_every_field_of_the_protocol_agrees(name: str) -> None:
    other = replace(PLAIN, **{name: "other"})
    assert (other.protocol != PLAIN.protocol, other.model) == (True, PLAIN.model)
    assert differing_fields(PLAIN, other) == (name,)
    with pytest.raises(UserError, match=rf"{name} is .* stop"):
        require_same_protocol(PLAIN, other, names=("a", "b"), task="T", remedy="stop")


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
        ("('/home/ada')", "('~')"),
        ("--data=/home/ada/x.tsv", "--data=~/x.tsv"),
        ("-o/home/ada/x", "-o~/x"),
        ("/home/ada:/home/bob", "~:/home/..."),
        ("/home/adam/x and /home/ada-lab/x", "/home/.../x and /home/.../x"),
        ("/Users/grace/x", "/Users/.../x"),
        ("/scratch/ada/models", "/scratch/.../models"),
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
