"""Small trainings of both libraries, on pairs of the sample."""

import pytest

from stsbench.data.benchmarks import load_sts


@pytest.fixture(scope="session")
def rows():
    """Return the sample's pairs with their gold between 0 and 1, as the libraries take them."""
    datasets = pytest.importorskip("datasets")
    table = load_sts("sample", text="sample").pairs
    return datasets.Dataset.from_dict(
        {
            "sentence1": table["sentence1"].tolist(),
            "sentence2": table["sentence2"].tolist(),
            "score": (table["gold"] / 5).tolist(),
        }
    )


@pytest.fixture
def sentence_model(tiny_bert):
    """Return a maker of one and the same small model of sentence-transformers, with dropout."""
    library = pytest.importorskip("sentence_transformers")

    def make():
        return library.SentenceTransformer(str(tiny_bert), device="cpu")

    return make
