"""`stsbench embed`, and `retrieve` in what it wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Stsbench = Callable[..., Any]

LINES = ["A cat slept.", "", "The ferry left late.", "A dog barked at the cat."]


def test_vectors_of_a_file_are_written_and_searched(stsbench: Stsbench, tiny_bert: Path) -> None:
    Path("lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    done = stsbench("embed", "lines.txt", "-m", tiny_bert, "--out", "v.npy", "--json")
    assert json.loads(done.out)[0]["rows"] == 3
    assert done.err.splitlines()[-1] == "written to v.npy"
    found = stsbench(
        "retrieve", "-m", tiny_bert, "--corpus", "v.npy", "--query", "A cat slept.", "-k", "1", "--json"
    )
    assert json.loads(found.out)[0]["sentence"] == "A cat slept."
    refused = stsbench("embed", "lines.txt", "-m", tiny_bert, "--out", "v.npy", "--max-length", "9")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "v.npy holds vectors of another use" in refused.err
