import pandas as pd

from stsbench.render.charts import curves

POINTS = pd.DataFrame({"step": [0, 1], "value": [1.0, 2.0]})


def test_the_seeds_of_a_method_share_its_colour_and_one_name() -> None:
    names = ["a-seed1", "a-seed2", "other"]
    figure = curves(dict.fromkeys(names, POINTS), "loss", {"a-seed1": "a", "a-seed2": "a"})
    first, second, other = (line.get_color() for line in figure.axes[0].lines)
    assert first == second != other
    assert sorted(text.get_text() for text in figure.axes[0].texts) == ["a", "other"]
