"""The worlds that the trials are held in, made once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.parent import Parent
from harness.trials import Bench
from harness.world import build


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the campaign out, which takes hours, unless it is asked for by name."""
    if "campaign" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("campaign")]
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Return two worlds of different content, with a warm parent to run commands in them."""
    is_campaign = "campaign" in request.config.option.markexpr
    folder: Path = tmp_path_factory.mktemp("faults")
    parent = Parent()
    yield Bench(build(folder / "world", parent, 0), build(folder / "others", parent, 1, is_whole=is_campaign))
    parent.close()
