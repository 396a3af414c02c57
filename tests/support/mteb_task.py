"""A task of MTEB's on pairs of ours, encoded by a function of ours and scored by MTEB itself."""

from collections.abc import Callable
from typing import Any

import pytest

from stsbench.data.tables import StsData


def scored_by_mteb(data: StsData, encode: Callable[[list[str]], Any], **options: Any) -> dict[str, Any]:
    """Return MTEB's scores of its STS12 with other pairs in it; the test is skipped where mteb is absent.

    Args:
        data: the pairs.
        encode: what encodes, as `owner/ours` at revision 1.
        options: of MTEB's `evaluate`.
    """
    mteb = pytest.importorskip("mteb", reason="needs mteb, in an environment of its own")
    from datasets import Dataset
    from mteb.models import ModelMeta

    class Ours:
        """An encoder as MTEB asks for one."""

        mteb_model_meta = ModelMeta.create_empty({"name": "owner/ours", "revision": "1"})

        def encode(self, inputs: Any, **_: Any) -> Any:
            return encode([text for batch in inputs for text in batch["text"]])

        def similarity(self, one: Any, other: Any) -> Any:
            return mteb.similarity_functions.cos_sim(one, other)

        def similarity_pairwise(self, one: Any, other: Any) -> Any:
            return mteb.similarity_functions.pairwise_cos_sim(one, other)

    task = mteb.get_task("STS12")
    columns = {name: data.pairs[name].tolist() for name in ("sentence1", "sentence2")}
    task.dataset = {"test": Dataset.from_dict(columns | {"score": data.pairs["gold"].tolist()})}
    task.data_loaded = True
    (scores,) = task.evaluate(Ours(), "test", encode_kwargs={}, num_proc=None, **options).values()
    return dict(scores)
