"""What changes a vector changes its identity: of each such thing two variants are measured from one cache.

The table below has a row for everything that a vector depends on. Give a new field or a new file of a checkpoint a
row, or enter it under `CHANGES_NOTHING` with the reason.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from test_checkpoint import give_own_code
from tiny_models import edit, list_modules

import stsbench as sb
from stsbench.base.files import cache_at
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder, Identity, reader_of
from stsbench.encoders.simple import SavedVectors
from stsbench.encoders.template import Template
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings
from stsbench.encoders.use import Use
from stsbench.encoders.weights import TailModule

TEXTS = [
    "A small cat sat on the old mat by the door.",
    "the Dog ran home?",
    "Two children carry a red boat down to the cold water while their father waits.",
    "she reads",
]
WIDTH = 32
ASKED = Template(name="asked", texts='it: "{sentence}" {mask} so {mask} .', pooling="mask")


@dataclass
class World:
    """A folder with the checkpoints of one test, which a row makes and changes."""

    root: Path
    tiny: Callable[..., Path]
    patch: pytest.MonkeyPatch

    def plain(self, kind="bert", name="plain"):
        return self.root / name if (self.root / name).is_dir() else self.tiny(kind, name)

    def modular(self, kind="bert"):
        folder = self.root / "modular"
        if not folder.is_dir():
            self.tiny(kind, "modular")
            chance = np.random.default_rng(5)
            for place, function in (("2_Dense", "activation.Tanh"), ("3_Dense", "linear.Identity")):
                weight = (chance.normal(size=(WIDTH, WIDTH)) / 4).astype(np.float32)
                (folder / place).mkdir()
                save_file({"linear.weight": weight}, folder / place / "model.safetensors")
                name = f"torch.nn.modules.{function}"
                about = {"in_features": WIDTH, "out_features": WIDTH, "bias": False, "activation_function": name}
                edit(folder / place / "config.json", **about)
            (folder / "1_Pooling").mkdir()
            self.pooled(folder, "mean")
            edit(folder / "sentence_bert_config.json", max_seq_length=40, do_lower_case=False)
            prompts = {"query": "the cat ", "passage": "the dog "}
            edit(folder / "config_sentence_transformers.json", prompts=prompts, default_prompt_name=None)
            list_modules(folder, "2_Dense", "3_Dense")
        return folder

    def adapter(self):
        pytest.importorskip("peft")
        base, folder = self.plain(name="base"), self.root / "adapter"
        if not folder.is_dir():
            folder.mkdir()
            chance = np.random.default_rng(3)
            place = "base_model.model.encoder.layer.{}.attention.self.query.lora_{}.weight"
            sides = {"A": (4, WIDTH), "B": (WIDTH, 4)}
            shapes = {place.format(layer, side): shape for layer in (0, 1) for side, shape in sides.items()}
            tensors = {name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
            save_file(tensors, folder / "adapter_model.safetensors")
            about = {"peft_type": "LORA", "base_model_name_or_path": str(base), "target_modules": ["query"]}
            edit(folder / "adapter_config.json", **about, r=4, lora_alpha=8)
        return folder

    @staticmethod
    def pooled(folder, mode):
        edit(folder / "1_Pooling" / "config.json", word_embedding_dimension=WIDTH, pooling_mode=mode)

    @staticmethod
    def scale(path, factor):
        first = path.with_name(f".first-{path.name}")
        if not first.is_file():
            shutil.copyfile(path, first)
        save_file({n: (w * factor).astype(w.dtype) for n, w in load_file(first).items()}, path, {"format": "pt"})


@dataclass(frozen=True)
class Row:
    """Fields and files that change a vector, and the maker of the model with the first variant or the second."""

    covers: tuple[str, ...]
    make: Callable[[World, bool], Encoder]
    only_rounds: bool = False


ROWS: list[Row] = []


def row(*covers):
    def enter(make):
        ROWS.append(Row(covers, make))
        return make

    return enter


def option(covers, first, second, *, base="plain", only_rounds=False, **others):
    name = covers[0].partition(".")[2]

    def make(world, other):
        return load(getattr(world, base)(), **{"pooling": "avg"} | others | {name: second if other else first})

    ROWS.append(Row(tuple(covers), make, only_rounds))


def template(field, second, *, first=None, only_rounds=False, **others):
    base = ASKED.model_copy(update=others | ({} if first is None else {field: first}))

    def make(world, other):
        return load(world.plain(), template=base.model_copy(update={field: second}) if other else base)

    ROWS.append(Row((f"Template.{field}",), make, only_rounds))


# How a model is loaded.
option(["Use.pooling"], "avg", "cls_before_pooler")
option(["Use.max_length"], None, 5)
option(["Use.prompt_name"], "query", "passage", base="modular")
option(["Use.prompt"], "represent this sentence for a search: ", "represent this sentence for a river: ")
option(["Use.precision"], "fp32", "bf16")
option(["Use.template"], "none", ASKED, pooling="auto")
option(["Use.normalize"], False, True)
option(["Use.dimensions"], 8, 16)
option(["Use.attention"], "sdpa", "eager", only_rounds=True)
option(["Use.whiten"], None, 2)
option(["Use.attention_mask"], "auto", "causal")
template("texts", ('it: "{sentence}" {mask} so {mask} !',))
template("rules", ("full_stop",), first=("strip",))
template("tokenize", "apart", texts=("{sentence}, it means {mask}",))
template("pooling", "mask2")
template("layers", (0,))
template("head", True)
template("subtract", "template", texts=('it: "{sentence}" {mask} .',))
template("subtract", "padded_template", first="template", texts=('it: "{sentence}" {mask} .',))
template("positions", "own", subtract="template", texts=('it: "{sentence}" {mask} .',))
template("padding", "left", pooling="last", only_rounds=True)
template("precision", "bf16")


@row("Use.prompts")
def _prompts(world, other):
    encoder = load(world.plain(), pooling="avg", prompts="query: ,for a river: ")
    return reader_of(encoder, "STS12", int(other))


@row("Use.revision")
def _revision(world, other):
    folders = {"one": world.plain(name="one"), "two": world.plain(name="two")}
    world.scale(folders["two"] / "model.safetensors", -1.5)
    where = "stsbench.encoders.checkpoint.from_hub"
    world.patch.setattr(where, lambda _name, revision, with_code: folders[revision])
    return load("someone/it", pooling="avg", revision="two" if other else "one")


@row("Use.backend")
def _backend(world, other):
    pytest.importorskip("openvino")
    pytest.importorskip("nncf")
    return load(world.plain(), pooling="avg", backend="openvino" if other else "torch")


@row("Use.device")
def _device(world, other):
    import torch

    if not torch.cuda.is_available():
        encoder: Any = load(world.plain(), pooling="avg", device="cpu")
        assert encoder.with_use(device="cuda").identity.key() != encoder.identity.key()
        pytest.skip("needs a CUDA device")
    return load(world.plain(), pooling="avg", device="cuda" if other else "cpu")


@row("Use.trust_remote_code")
def _trusted(world, other):
    folder = world.plain()
    (folder / "own.py").write_text(
        "from transformers import PreTrainedTokenizerFast\n"
        "class OwnTokenizer(PreTrainedTokenizerFast):\n"
        "    def __call__(self, text, **options):\n"
        "        if isinstance(text, list):\n"
        "            text = [' '.join(reversed(each.split())) for each in text]\n"
        "        return super().__call__(text, **options)\n"
    )
    edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "own.OwnTokenizer"]})
    return load(folder, pooling="cls_before_pooler", trust_remote_code=other)


@row("a file that a checkpoint's own code reads", "a checkpoint's own code")
def _code(world, other):
    folder = world.plain()
    table = folder / "table.txt"
    table.write_text("2" if other else "1")
    give_own_code(folder, world.root / "it-ran", table)
    return load(folder, pooling="avg", trust_remote_code=True)


def changed(*covers, change, base="modular", **options):
    def make(world, other):
        kind, _, of = base.partition(":")
        folder = getattr(world, kind)(of) if of else getattr(world, kind)()
        change(world, folder, other)
        return load(folder, **options)

    ROWS.append(Row(covers, make))


def scaled(*covers, base="modular", **options):
    changed(*covers, change=lambda w, f, o: w.scale(f / covers[0], -1.5 if o else 1), base=base, **options)


def modules(*covers, one, two):
    changed(*covers, change=lambda w, f, o: list_modules(f, *(two if o else one)))


def entry(file, *covers, base="modular", key, one, two, **options):
    changed(file, *covers, change=lambda w, f, o: edit(f / file, **{key: two if o else one}), base=base, **options)


def swap_words(_world, folder, other):
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    ids = sorted(content["model"]["vocab"][word] for word in ("cat", "dog"))
    content["model"]["vocab"] |= dict(zip(("cat", "dog"), reversed(ids) if other else ids, strict=True))
    path.write_text(json.dumps(content))


# The files of a checkpoint, and its modules.
_FUNCTIONS = [f"torch.nn.modules.{name}" for name in ("activation.Tanh", "activation.ReLU")]
_ACTIVATION = {"key": "hidden_act", "one": "gelu", "two": "relu", "pooling": "avg"}
entry("config.json", "TransformerEncoder.checkpoint", "Identity.config_sha256", base="plain", **_ACTIVATION)
scaled("model.safetensors", "Identity.weights_sha256", base="plain", pooling="avg")
changed("tokenizer.json", "Identity.tokenizer_sha256", change=swap_words, base="plain", pooling="avg")
# A special token is found inside of words too.
entry("tokenizer_config.json", base="plain", key="additional_special_tokens", one=[], two=["the"], pooling="avg")
_BOTH = ["2_Dense", "3_Dense"]
modules("modules.json", "TransformerSettings.tail", "TailModule.folder", one=_BOTH, two=_BOTH[::-1])
modules("modules.json", "TailModule.kind", "Identity.modules", one=_BOTH, two=["2_Dense", "Normalize", "3_Dense"])
modules("TransformerSettings.normalizes", "Identity.normalizes", one=["2_Dense"], two=["2_Dense", "Normalize"])
changed("1_Pooling/config.json", change=lambda w, f, o: w.pooled(f, "cls" if o else "mean"))
_TANH_RELU = {"key": "activation_function", "one": _FUNCTIONS[0], "two": _FUNCTIONS[1]}
entry("2_Dense/config.json", "TailModule.activation", **_TANH_RELU)
entry("3_Dense/config.json", **_TANH_RELU)
scaled("2_Dense/model.safetensors")
scaled("3_Dense/model.safetensors")
entry("sentence_bert_config.json", key="max_seq_length", one=40, two=6)
_CASE = {"base": "modular:roberta", "key": "do_lower_case", "one": False, "two": True}
entry("sentence_bert_config.json", "TransformerSettings.lower_case", **_CASE)
entry("config_sentence_transformers.json", key="default_prompt_name", one="query", two="passage")


def by_library(world, folder, *after):
    pytest.importorskip("sentence_transformers")
    world.pooled(folder, "mean_sqrt_len_tokens")
    list_modules(folder, *after)


changed(
    "a module that the library reads",
    "TransformerEncoder.kind",
    "Identity.kind",
    change=lambda w, f, o: by_library(w, f, *_BOTH) if o else w.pooled(f, "mean"),
)
changed(
    "a file of a module that the library reads",
    change=lambda w, f, o: by_library(w, f, *(_BOTH[::-1] if o else _BOTH)),
)
scaled("adapter_model.safetensors", "TransformerEncoder.adapter", base="adapter", pooling="avg")
entry("adapter_config.json", base="adapter", key="lora_alpha", one=8, two=64, pooling="avg")


@row("an adapter at all")
def _adapted(world, other):
    adapter = world.adapter()
    return load(adapter if other else world.plain(name="base"), pooling="avg")


# What is no checkpoint.
@row("a fit", "Identity.fitted")
def _fit(world, other):
    words = ["dog", "cat", "rain", "river", "she", "reads", "home", "old"]
    texts = [f"{one} {another}" for one in words for another in words]
    made, place = world.root / f"fit-{other}", world.root / "fit"
    if not made.is_dir():
        base = load(world.plain(), pooling="avg", prompt="it: ")
        sb.fit("whitening", base, sentences=texts[:40] if other else texts, out=made, dimensions=4)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(made, place)
    return load(place)


@row("a file of word vectors")
def _word_vectors(world, other):
    path = world.root / "words.txt"
    path.write_text(f"cat 1 2\ndog {7 if other else 3} 4\nthe 5 6\nshe 1 1\n")
    return load(path)


@row("saved vectors", "the sentences of saved vectors")
def _saved(world, other):
    matrix, sentences = world.root / "vectors.npy", world.root / "sentences.txt"
    np.save(matrix, np.arange(len(TEXTS) * 3).reshape(-1, 3) + 1.0)
    sentences.write_text("\n".join(TEXTS[:: -1 if other else 1]))
    return SavedVectors(matrix, sentences)


CHANGES_NOTHING = {
    "Identity.name": "the model's name; what it names is hashed",
    **dict.fromkeys(
        ("Identity.use", "TransformerSettings.use", "TransformerEncoder.settings"), "each of its fields has a row"
    ),
    "Template.name": "what is in a template is hashed",
    **dict.fromkeys((f"Template.{name}" for name in ("title", "note", "paper", "sources")), "words for readers"),
    "TransformerEncoder.notes": "words for readers",
    "TransformerEncoder.loaded": "shares the network of the same files",
}


def measured(encoder, cache):
    """Return a model's vectors, and how many of them were not in the cache."""
    with cache_at(cache):
        found = embed(encoder, TEXTS)
    (vectors,) = found.vectors.values()
    return vectors[found.rows], found.cost.encoded


@pytest.fixture
def world(tmp_path, tiny, monkeypatch):
    return World(tmp_path, tiny, monkeypatch)


@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.covers[0])
def test_what_changes_a_vector_changes_what_the_cache_answers(entry, world, tmp_path):
    shared = tmp_path / "shared-cache"
    first, _ = measured(entry.make(world, False), shared)
    second, _ = measured(entry.make(world, True), shared)
    encoder = entry.make(world, False)
    again, encoded = measured(encoder, shared)
    alone = [measured(entry.make(world, other), tmp_path / f"cache-{other}")[0] for other in (True, False)]
    np.testing.assert_array_equal(second, alone[0])
    np.testing.assert_array_equal(again, alone[1])
    np.testing.assert_array_equal(again, first)
    assert first.shape != second.shape or (np.abs(first - second).max() < 1e-4) == entry.only_rounds
    is_hashed = encoder.identity.weights_sha256 is not None and encoder.identity.kind != "vectors"
    assert (encoded == 0) == is_hashed


def test_every_field_of_a_model_has_a_row_and_no_row_is_of_another_field():
    described = (Use, TransformerSettings, TransformerEncoder, TailModule, Identity)
    known = {f"{kind.__name__}.{field.name}" for kind in described for field in fields(kind)}  # type: ignore[arg-type]
    known |= {f"Template.{name}" for name in Template.model_fields}
    named = {name for entry in ROWS for name in entry.covers} | CHANGES_NOTHING.keys()
    assert {name for name in named if name[0].isupper() and "." in name} == known


def test_every_file_of_a_checkpoint_has_a_row(world):
    covered = {name for entry in ROWS for name in entry.covers}
    for folder in (world.plain(), world.modular()):
        files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        assert [name for name in files if name not in covered] == []
