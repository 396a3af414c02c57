"""What stands in for the papers' encoders, corpora, tables and tasks where only the way is tried.

An encoder has two layers of random weights, drawn by its name, so that no two are alike; its architecture is the
one that its name says. Word vectors are random, too, for the words of the bundled sample; corpus and tables are of
its sentences. A few rows of the real tasks are files of their own, whose hashes are not those of the released
files, so that no record of them passes for one of the whole task. What is made lies in the cache.
"""

import hashlib
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.base.files import atomic_folder, atomic_path, cache_dir
from stsbench.base.manifest import fingerprint
from stsbench.data.benchmarks import load_labelled, load_sts, sample_sentences
from stsbench.data.catalogue import TextVariant, data_set, source
from stsbench.data.locate import DataNotFoundError, find_root
from stsbench.encoders.vector_files import WORD_VECTOR_SUFFIXES
from stsbench.scoring.settings import Protocol
from stsbench.scoring.tasks import parse_tasks
from stsbench.training.recipe_files import read_recipe

_STEPS = 2
_CORPUS_ROWS = 2048
"""Two steps of the largest batch that a plan has."""

_SHORTEST, _LENGTHS = 1, 13
"""Words of the shortest sentence of the corpus; and how many lengths there are, for batches by length."""

_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
_POSITIONS = 32
"""So few that most sentences are cut to one length, and a batch holds many of them."""
_SPREAD = 0.1
"""Of random weights: those that a network starts with are so small that all sentences get nearly one vector."""

_WORD_VECTORS = "words-"
"""Before the digest in the name of a file of word vectors."""

_ARCHITECTURES = ("roberta", "mpnet", "bert")
"""By their names in Transformers; a checkpoint's name that holds several has the first."""


def tried(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's changes with stand-ins for its encoders and its corpus, and two steps of its training."""
    if "checkpoint" in changes:
        return {**changes, "checkpoint": str(encoder_folder(str(changes["checkpoint"])))}
    replaced = {key: _with_encoders(value) for key, value in changes.items()}
    settings = [
        f"{'corpus.path' if key == 'corpus' else key}={json.dumps(value)}"
        for key, value in replaced.items()
        if key != "recipe"
    ]
    recipe = read_recipe(str(changes["recipe"]), settings)
    changed = {
        "base": str(encoder_folder(recipe.base)),
        "corpus": str(_folder() / f"corpus-{recipe.corpus.columns}.tsv"),
        "corpus.rows": _STEPS * recipe.optimiser.batch * recipe.optimiser.accumulate,
        "optimiser.epochs": 1,
    }
    for name, task in recipe.tasks.items():
        rows = _STEPS * (task.batch or recipe.optimiser.batch)
        # Of what is held out of them a share is scored; none is scored of no row.
        changed[f"tasks.{name}.rows"] = rows if task.dev else round(rows / (1 - task.share_held_out))
        if task.dev:
            changed[f"tasks.{name}.dev_rows"] = rows
    # What the person changed stays.
    return {**changed, **replaced}


def _with_encoders(value: Any) -> Any:
    """Return a value of a recipe in which stand-ins are named in place of the encoders that views read."""
    if isinstance(value, Mapping):
        return {
            key: str(encoder_folder(str(part))) if key == "model" else _with_encoders(part)
            for key, part in value.items()
        }
    return [_with_encoders(part) for part in value] if isinstance(value, list | tuple) else value


def encoder_folder(name: str) -> Path:
    """Return where the encoder lies that stands in for one of this name, whether it was made or not.

    Of a file of word vectors that is a file.

    >>> encoder_folder("FacebookAI/roberta-large").name.partition("-")[0]
    'roberta'
    """
    if Path(name).suffix in WORD_VECTOR_SUFFIXES:
        made_of = f"{name} {_SIZES['hidden_size']} {_SPREAD}"
        return _folder() / "encoders" / f"{_WORD_VECTORS}{fingerprint(made_of)[:12]}.txt"
    known = (architecture for architecture in _ARCHITECTURES if architecture in name.casefold())
    # The only encoders without their architecture in the name that papers here compare with.
    architecture = "roberta" if "declutr" in name.casefold() else next(known, "")
    if not architecture:
        raise UserError(f"{name} does not say its architecture, so no random encoder stands in for it.")
    made_of = f"{name} {_SIZES} {_POSITIONS} {_SPREAD}"
    return _folder() / "encoders" / f"{architecture}-{fingerprint(made_of)[:12]}"


def make_stand_ins(rows: Iterable[Mapping[str, Any]]) -> None:
    """Make what the rows of an experiment name and is not there yet: encoders, corpora, tables."""
    named = {text for changes in rows for text in _texts(changes) if text.startswith(str(_folder()))}
    for path in sorted(map(Path, named)):
        if path.exists():
            continue
        if path.name.startswith("corpus-"):
            _make_corpus(path)
            continue
        if path.name.startswith(_WORD_VECTORS):
            _make_word_vectors(path)
            continue
        with atomic_folder(path) as building:
            if path == labelled_path():
                _make_tables(building)
            else:
                _make_encoder(path.name, building)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def _make_corpus(path: Path) -> None:
    """Write rows of the sample's sentences, cut to many lengths; a number tells those apart that begin alike."""
    columns, sentences = int(path.stem.partition("-")[2]), sample_sentences()

    def sentence(place: int) -> str:
        words = sentences[place % len(sentences)].split()
        return f"{' '.join(words[: _SHORTEST + place % _LENGTHS])} {place}"

    rows = (map(sentence, range(first, first + _CORPUS_ROWS)) for first in range(columns))
    with atomic_path(path) as temporary:
        lines = ("\t".join(row) + "\n" for row in zip(*rows, strict=True))
        temporary.write_text("".join(lines), encoding="utf-8")


def _make_word_vectors(path: Path) -> None:
    """Write a random vector for every word of the sample, as GloVe's files have them."""
    words = sorted({word for text in sample_sentences() for word in text.lower().split()})
    draw = np.random.default_rng(int(path.stem.removeprefix(_WORD_VECTORS), 16))
    rows = draw.normal(scale=_SPREAD, size=(len(words), _SIZES["hidden_size"]))
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for word, row in zip(words, rows, strict=True):
            stream.write(f"{word} {' '.join(f'{value:.5f}' for value in row)}\n")


def labelled_path() -> Path:
    """Return where the sample's tables for the three labelled tasks lie, whether they were made or not."""
    return _folder() / "labelled"


def _make_tables(folder: Path) -> None:
    """Write the sample as tables of the three labelled tasks, named and laid out as the course's files are."""
    sentiment = load_labelled("sample-sentiment", text="sample").items
    paraphrases = load_labelled("sample-paraphrases", text="sample").items
    pairs = load_sts("sample", text="sample").pairs
    tables = {
        "ids-sst": (["sentence", "sentiment"], zip(sentiment["sentence1"], sentiment["label"], strict=True)),
        "quora": (
            ["sentence1", "sentence2", "is_duplicate"],
            zip(paraphrases["sentence1"], paraphrases["sentence2"], paraphrases["label"], strict=True),
        ),
        "sts": (
            ["sentence1", "sentence2", "similarity"],
            zip(pairs["sentence1"], pairs["sentence2"], pairs["gold"], strict=True),
        ),
    }
    for name, (columns, cells) in tables.items():
        rows = list(cells)
        # Every fourth row is to score; of the questions there is one file, as the course has it.
        whole = {"dev": rows} if name == "quora" else {"train": rows, "dev": rows[::4]}
        if name != "quora":
            whole["train"] = [row for place, row in enumerate(rows) if place % 4]
        for part, of_part in whole.items():
            lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in of_part)]
            (folder / f"{name}-{part}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _make_encoder(name: str, folder: Path) -> None:
    """Write an encoder of random weights with its head of a masked language model, pooler and tokenizer."""
    require(MODELS, "to make an encoder that stands in for another")
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM
    from transformers.utils import logging

    architecture, _, digest = name.partition("-")
    tokenizer = _tokenizer(architecture)
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        max_position_embeddings=_POSITIONS,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        **_SIZES,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(digest, 16))
        whole = AutoModelForMaskedLM.from_config(config)
        # What the papers' checkpoints have, and a masked language model leaves out: a pooler.
        setattr(whole, whole.base_model_prefix, AutoModel.from_config(config))
        whole.tie_weights()
        with torch.no_grad():
            for parameter in whole.parameters():
                parameter.normal_(std=_SPREAD)
    logging.disable_progress_bar()
    whole.save_pretrained(folder)
    logging.enable_progress_bar()
    tokenizer.save_pretrained(folder)


def _tokenizer(architecture: str) -> Any:
    """Return a tokenizer of letters, as the architecture's own cuts: word pieces, or bytes for RoBERTa."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    if architecture == "bert":
        pad, unknown, first, last, mask = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
    else:
        pad, unknown, first, last, mask = "<pad>", "<unk>", "<s>", "</s>", "<mask>"
    # In the order of RoBERTa, whose positions are counted from behind the padding's place.
    names = [first, pad, last, unknown, mask]
    if architecture == "roberta":
        signs = sorted(pre_tokenizers.ByteLevel.alphabet())
        pieces = {name: place for place, name in enumerate([*names, *signs])}
        tokenizer = Tokenizer(models.BPE(pieces, [], unk_token=unknown))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    else:
        words = sorted({word for text in sample_sentences() for word in re.findall(r"[a-z]+", text.lower())})
        letters = [*string.ascii_lowercase, *string.digits]
        vocabulary = [*names, *string.punctuation, *letters, *(f"##{letter}" for letter in letters)]
        pieces = {name: place for place, name in enumerate(dict.fromkeys([*vocabulary, *words]))}
        tokenizer = Tokenizer(models.WordPiece(pieces, unk_token=unknown))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
    ends = [(first, names.index(first)), (last, names.index(last))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", pair=f"{first} $A {last} $B {last}", special_tokens=ends
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        unk_token=unknown,
        cls_token=first,
        sep_token=last,
        mask_token=mask,
    )


def _folder() -> Path:
    return cache_dir() / "stand-ins"


def excerpt(tasks: str, rows: int, data_dirs: Sequence[Path] = ()) -> Path | None:
    """Return a data folder that holds about so many rows of each split of the tasks, from all over their files.

    It is kept in the cache by what it holds; None where a task's files are not here.
    """
    held: dict[str, bytes] = {}
    for spec in parse_tasks(tasks, Protocol()):
        variant = data_set(spec.task).texts[spec.text]
        released = source(variant.source)
        paths = [file.path for part in variant.parts for file in part.files]
        try:
            root = find_root(released, paths, spec.task, data_dirs)
        except DataNotFoundError:
            return None
        for part in variant.parts:
            subsets = sum(subset.split == part.split for subset in variant.parts)
            files = {file.path: (root / file.path).read_bytes().splitlines(keepends=True) for file in part.files}
            for path, lines in zip(files, _some(variant, list(files.values()), rows // subsets), strict=True):
                held[f"{released.roots[0]}/{path}"] = b"".join(lines)
    digest = hashlib.sha256()
    for path, content in sorted(held.items()):
        digest.update(f"{path} {len(content)}\n".encode() + content)
    folder = cache_dir() / "excerpts" / digest.hexdigest()[:12]
    if not folder.is_dir():
        with atomic_folder(folder) as building:
            for path, content in held.items():
                (building / path).parent.mkdir(parents=True, exist_ok=True)
                (building / path).write_bytes(content)
    return folder


def _some(variant: TextVariant, files: Sequence[Sequence[bytes]], rows: int) -> Iterator[list[bytes]]:
    """Yield for each of the files of a part, which are read side by side, about so many of its lines.

    They are from all over it, as many of each class where a line begins with one, and no pair that nobody scored.
    """
    first = 1 if variant.header else 0
    classes: dict[bytes, list[int]] = {}
    for place, lines in enumerate(zip(*files, strict=False)):
        if place >= first and all(line.strip() for line in lines):
            label = lines[0].partition(b":")[0] if variant.layout == "label-first" else b""
            classes.setdefault(label, []).append(place)
    kept = list(range(first))
    for places in classes.values():
        kept += places[:: max(1, len(places) * len(classes) // max(1, rows))]
    for file in files:
        yield [file[place] for place in sorted(kept)]
