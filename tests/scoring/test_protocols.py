"""Protocols: named sets of choices."""

import pytest

from stsbench import UserError
from stsbench.scoring.settings import PROTOCOLS, Protocol, choose_protocol


def test_simcse_is_the_default() -> None:
    assert choose_protocol() == Protocol() == PROTOCOLS["simcse"]
    assert Protocol() == Protocol("simcse", "all", "spearman", "cosine", "senteval", "test")


def test_senteval_differs_in_its_aggregation_and_mteb_in_sick_s_split() -> None:
    assert choose_protocol("senteval") == Protocol("senteval", aggregation="wmean")
    assert choose_protocol("mteb") == Protocol("mteb", sick_split="all")


def test_single_choices_replace_the_preset_s() -> None:
    chosen = choose_protocol("senteval", aggregation="mean", metric="pearson", similarity="dot", text="raw")
    assert chosen == Protocol("senteval", "mean", "pearson", "dot", "raw")


@pytest.mark.parametrize("option", ["aggregation", "metric", "similarity", "text"])
def test_an_unknown_choice_is_answered_with_the_known_ones(option: str) -> None:
    with pytest.raises(UserError, match=rf"^unknown {option} 'x': choose one of \w+, \w+"):
        choose_protocol(**{option: "x"})


def test_an_unknown_protocol_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"unknown protocol 'sbert': choose one of simcse, senteval, mteb\."):
        choose_protocol("sbert")
