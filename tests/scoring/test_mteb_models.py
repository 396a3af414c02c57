"""`mteb:NAME` gives the numbers of `mteb.evaluate`, prompts by task and side too, and encodes nothing twice."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.data.tables import StsData

mteb = pytest.importorskip("mteb")
pytest.importorskip("sentence_transformers")

PROMPTS = {"STS": "it is ", "STS13": "a bird ", "query": "who is ", "document": "here is ", "own": "nobody asks "}
Saved = Callable[..., Path]


@pytest.fixture
def saved(tiny_bert: Path, tmp_path: Path) -> Saved:
    """Return a function that saves a tiny checkpoint with prompts as sentence-transformers does."""

    def save(prompts: Mapping[str, str] = PROMPTS, default: str | None = None) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules

        bert, pooling = modules.Transformer(str(tiny_bert)), modules.Pooling(32, pooling_mode="mean")
        named: Any = {"prompts": dict(prompts), "default_prompt_name": default}
        model = SentenceTransformer(modules=[bert, pooling, modules.Normalize()], device="cpu", **named)
        for name, parameter in model.named_parameters():
            # Random ones make all sentences nearly alike, whose ranks are a matter of rounding.
            if "LayerNorm" in name:
                parameter.data.fill_(float(name.endswith("weight")))
        folder = tmp_path / f"saved-{len(prompts)}-{default}"
        model.save(str(folder))
        return folder

    return save


def by_mteb(model: Any, data: StsData, sides: tuple[Any, Any] = (None, None)) -> float:
    """Return the number that `mteb.evaluate` gives on mteb's task of that name, with the pairs given here."""
    from datasets import Dataset

    name = next(name for name, ours in MTEB_TASKS.items() if ours == data.task)
    columns = data.pairs[["sentence1", "sentence2", "gold"]].rename(columns={"gold": "score"})

    class Local(type(mteb.get_task(name))):  # type: ignore[misc]
        input1_prompt_type, input2_prompt_type = sides

        def load_data(self, *_: Any, **__: Any) -> None:
            self.dataset = {"test": Dataset.from_dict(columns.to_dict("list"))}
            self.data_loaded = True

    result = mteb.evaluate(model, Local(), cache=None, show_progress_bar=False)
    return float(result.task_results[0].scores["test"][0]["cosine_spearman"])


def library(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize("default", [None, "own"])
def test_every_sts_task_has_mtebs_number_and_a_prompt_by_its_name_or_its_type(
    default: str | None, saved: Saved, toy_data: Callable[..., StsData]
) -> None:
    folder = saved(default=default)
    tasks = [toy_data(ours, seed=place, pairs=40) for place, ours in enumerate(MTEB_TASKS.values())]
    record = sb.evaluate(f"mteb:{folder}", tasks, protocol=sb.protocol("mteb"))
    model, prompts = library(folder), set()
    for data, score, signature in zip(tasks, record.scores, record.signatures, strict=True):
        assert score.value == pytest.approx(by_mteb(model, data), abs=1e-5)
        assert signature.use.prompt == PROMPTS["STS13" if data.task == "STS13" else "STS"]
        prompts.add(signature.use.prompt)
    assert prompts == {"it is ", "a bird "}
    plain = sb.evaluate(folder, tasks)
    assert all(abs(one.value - other.value) > 1e-4 for one, other in zip(plain.scores, record.scores, strict=True))


def test_the_sides_of_a_task_have_the_prompts_of_their_types(
    saved: Saved, toy_data: Callable[..., StsData], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mteb.types import PromptType

    folder = saved({name: PROMPTS[name] for name in ("query", "document")})
    sides, data = (PromptType.query, PromptType.document), toy_data("STS14", pairs=40)
    own = type(mteb.get_task("STS14"))
    monkeypatch.setattr(own, "input1_prompt_type", sides[0])
    monkeypatch.setattr(own, "input2_prompt_type", sides[1])
    record = sb.evaluate(f"mteb:{folder}", data)
    assert record.scores[0].value == pytest.approx(by_mteb(library(folder), data, sides), abs=1e-5)
    assert record.signatures[0].use.prompts == ("who is ", "here is ")
    assert f"{record.signature}".count("|prompts:who%20is%20,here%20is%20|") == 1
    turned = by_mteb(library(folder), data, sides[::-1])
    assert abs(record.scores[0].value - turned) > 1e-4


def test_nothing_is_encoded_twice_until_a_file_or_a_version_changes(
    saved: Saved, toy_data: Callable[..., StsData], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, data = saved(), [toy_data("STS12"), toy_data("STS16", seed=1)]
    texts = len({text for task in data for side in ("sentence1", "sentence2") for text in task.pairs[side]})
    assert sb.evaluate(f"mteb:{folder}", data).encoding["encoded"] == texts
    assert sb.evaluate(f"mteb:{folder}", data).encoding["encoded"] == 0
    assert sb.evaluate(sb.load(folder, prompt="it is "), data).encoding["encoded"] == texts
    for module in (mteb, sb.encoders.mteb_models):
        with monkeypatch.context() as patch:
            patch.setattr(module, "__version__", "99")
            assert sb.evaluate(f"mteb:{folder}", data).encoding["encoded"] == texts
    (folder / "README.md").write_text("other", encoding="utf-8")
    assert sb.evaluate(f"mteb:{folder}", data).encoding["encoded"] == texts


@pytest.mark.parametrize(
    ("name", "use", "message"),
    [
        ("SAVED", {"pooling": "cls"}, r"^--pooling: not for a model that mteb loads\.$"),
        ("", {}, r"^mteb: lacks the name of a model: for example mteb:minilm\.$"),
        ("/nowhere/model", {}, r"^mteb:/nowhere/model: no such folder\. Check the path\.$"),
        ("SAVED", {"revision": "v2"}, r"is a folder without revisions: leave out --revision\.$"),
        ("sentence-transformers/all-MiniLM-L6-v2", {"revision": "v9"}, "revision v9 not found"),
        ("nomic-ai/nomic-embed-text-v1", {}, r"may run Python code .* add --trust-remote-code\.$"),
    ],
)
def test_what_cannot_be_asked_of_a_model_of_mtebs_is_refused(
    name: str, use: dict[str, Any], message: str, saved: Saved
) -> None:
    with pytest.raises(sb.UserError, match=message):
        sb.load("mteb:" + (str(saved()) if name == "SAVED" else name), **use)
