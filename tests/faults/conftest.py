"""Leaves the campaign out unless it is selected."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the campaign, which takes hours."""
    if "campaign" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("campaign")])
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
