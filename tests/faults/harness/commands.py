"""The commands and what they read and write: whoever adds a command declares here how it is run.

A test goes over all commands that `stsbench --help` lists, and over the commands of each, and fails for one that
is not declared. Its options are found by the harness itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

OURS, SPARED, THEIRS, OPTIONAL = "ours", "spared", "theirs", "optional"
"""Whose a file is.

`OURS`: we wrote it, so that a change in it is told or makes no difference. `SPARED`: likewise, and where it is
absent the command says what it does without. `THEIRS`: the person's, who may change it, and gets another answer,
which says what it was computed from. `OPTIONAL`: theirs, and not needed.
"""

_CHECKPOINT = {
    "model/config.json": THEIRS,
    "model/model.safetensors": THEIRS,
    "model/tokenizer.json": THEIRS,
    "model/tokenizer_config.json": OPTIONAL,
    "model/modules.json": OPTIONAL,
    "model/1_Pooling/config.json": THEIRS,
    "model/sentence_bert_config.json": OPTIONAL,
}

_STS13 = {
    "data/downstream/STS/STS13-en-test/STS.input.OnWN.txt": THEIRS,
    "data/downstream/STS/STS13-en-test/STS.gs.OnWN.txt": THEIRS,
}

_DEV = {"data/downstream/STS/STSBenchmark/sts-dev.csv": THEIRS}

_CACHED = {"../cache/embeddings/*.vectors": OURS}

# What is there is all that these commands tell.
_TOLD = {"../cache/embeddings/*.vectors": OPTIONAL, "../cache/tokens/*/*": OPTIONAL}


def _spared(name: str) -> dict[str, str]:
    return {f"runs/{name}/run.json": OURS, f"runs/{name}/items.parquet": SPARED}


def _record(name: str) -> dict[str, str]:
    return {f"runs/{name}/run.json": OURS, f"runs/{name}/items.parquet": OURS}


_EMBEDDED = {**_record("s"), **_STS13, **_CACHED}


@dataclass(frozen=True)
class Use:
    """A command as it is run, once.

    Attributes:
        arguments: what is typed.
        reads: the files that it reads, by a pattern relative to the working folder, and whose they are.
        writes: the files and folders that it writes there.
        codes: exit codes that are answers, beside 0.
        partial: whether it prints and writes what it has before it says what it lacks.
        again: what is typed after it was killed, where the same would not go on.
        is_slow: whether it takes seconds, so that the gate leaves it out and the campaign disturbs it less often.
        is_piecewise: whether what it writes is a folder of several results, each whole but not all at once.
    """

    arguments: tuple[str, ...]
    reads: dict[str, str] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    partial: bool = False
    again: tuple[str, ...] = ()
    is_slow: bool = False
    is_piecewise: bool = False

    @property
    def name(self) -> str:
        """What tests call it."""
        return " ".join(self.arguments)


def _use(line: str, reads: dict[str, str] | None = None, writes: Sequence[str] = (), **more: object) -> Use:
    return Use(tuple(line.split()), reads or {}, tuple(writes), **more)  # type: ignore[arg-type]


_OWN_RUN = "run -m model --data {} --out runs/new --json"
_SAVED = "run --vectors vectors.npy --sentences sentences.txt --data pairs.csv --out runs/new --json"

USES: dict[str, tuple[Use, ...]] = {
    "run": (
        _use(_OWN_RUN.format("pairs.tsv") + " --no-cache", {**_CHECKPOINT, "pairs.tsv": THEIRS}, ["runs/new"]),
        _use(_OWN_RUN.format("pairs.tsv"), _CACHED, ["runs/new", "../cache/embeddings"]),
        _use(_OWN_RUN.format("pairs.csv"), {"pairs.csv": THEIRS}, ["runs/new", "../cache/embeddings"]),
        _use(_OWN_RUN.format("pairs.jsonl"), {"pairs.jsonl": THEIRS}, ["runs/new", "../cache/embeddings"]),
        _use(_OWN_RUN.format("items.parquet"), {"items.parquet": THEIRS}, ["runs/new", "../cache/embeddings"]),
        _use(_SAVED, {"vectors.npy": THEIRS, "sentences.txt": THEIRS}, ["runs/new"]),
        _use(
            "run -m model --template template.yaml --data pairs.csv --out runs/new --json",
            {"template.yaml": THEIRS},
            ["runs/new", "../cache/embeddings"],
        ),
        _use(
            "run -m words.txt --data pairs.csv --out runs/new --json",
            {"words.txt": THEIRS},
            ["runs/new", "../cache/embeddings"],
        ),
        _use(
            "run --encoder-module mymodel:encode --tasks STS13 --out runs/new --json",
            {"mymodel.py": THEIRS, **_STS13},
            ["runs/new"],
        ),
        _use(
            "run -m model --tasks TREC --kfold 2 --out runs/new --json",
            {"data/downstream/TREC/TREC_10.label": THEIRS},
            ["runs/new", "../cache/embeddings"],
        ),
        # What was fitted, and the model that it was fitted for.
        _use(
            "run -m white --data pairs.tsv --out runs/new --json --no-cache",
            {
                "white/fit.json": OURS,
                "white/fit.safetensors": OURS,
                "white/2_Dense/model.safetensors": OURS,
                "white/modules.json": OURS,
                "white/model.safetensors": OURS,
            },
            ["runs/new"],
        ),
        _use(
            "run -m flow --data pairs.tsv --out runs/new --json --no-cache",
            {"flow/fit.json": OURS, "flow/fit.safetensors": OURS, "model/model.safetensors": OURS},
            ["runs/new"],
        ),
        # Over the record of the same measurement.
        _use(
            "run -m model --data pairs.tsv --out runs/a --json",
            _record("a"),
            ["runs/a", "../cache/embeddings"],
        ),
    ),
    "show": (
        _use("show runs/a --json", {"runs/a/run.json": OURS}),
        _use("show runs/t --json", {"runs/t/run.json": OURS}),
    ),
    "compare": (
        _use("compare runs/a runs/b --json", _record("a")),
        _use(
            "compare --a runs/a runs/c --b runs/b runs/d --json",
            _spared("c"),
        ),
        _use("compare runs/a runs/b --json --figure difference.svg", _record("a"), ["difference.svg"]),
        _use("compare runs/t runs/t --json", _record("t")),
    ),
    "plan": (_use("plan runs/a runs/b --difference 0.5 --json", _record("a")),),
    "best-of": (_use("best-of runs/a runs/c --number 50 --json", _record("a")),),
    "rank": (
        _use("rank runs/a runs/b runs/c --json", _record("a")),
        _use("rank runs/a runs/b runs/c --figure ranks.svg -q", _record("b"), ["ranks.svg"]),
    ),
    "check": (
        _use("check runs/a --baseline runs/b --json", _spared("a"), codes=(1, 3), partial=True),
        _use(
            "check runs/b --baseline runs/a --json --junit check.xml",
            _spared("a"),
            ["check.xml"],
            codes=(1, 3),
            partial=True,
        ),
        _use(
            "check results/senteval.json --against unsup-simcse-bert-base --json",
            {"results/senteval.json": THEIRS},
            codes=(1, 3),
            partial=True,
        ),
    ),
    "explore": (
        _use(
            "explore runs/a runs/b --data pairs.tsv --out both.html -q",
            {**_record("a"), "pairs.tsv": THEIRS},
            ["both.html"],
        ),
    ),
    "board": (_use("board runs/a --out all.html", _spared("a"), ["all.html", "../cache/board"]),),
    "report": (
        _use(
            "report runs/a runs/b --no-analyses --out report -q",
            _spared("a"),
            ["report", "../cache/embeddings"],
        ),
        _use("report runs/a --model-card", _spared("a")),
        _use("report runs/a --model-card --out card.md", _spared("a"), ["card.md"]),
    ),
    "import": (
        _use(
            "import results/senteval.json --out runs/new --json", {"results/senteval.json": THEIRS}, ["runs/new"]
        ),
        _use("import results/mteb --out runs/new --json", {"results/mteb/STS13.json": OPTIONAL}, ["runs/new"]),
        _use(
            "import results/items.parquet --out runs/new --json", {"results/items.parquet": THEIRS}, ["runs/new"]
        ),
        _use(
            "import similarities.txt --gold pairs.csv --out runs/new --json",
            {"similarities.txt": THEIRS},
            ["runs/new"],
        ),
        _use(
            "import similarities.npy --gold pairs.csv --out runs/new --json",
            {"similarities.npy": THEIRS},
            ["runs/new"],
        ),
        _use(
            "import own_predictions.json --gold pairs.csv --out runs/new --json",
            {"own_predictions.json": THEIRS},
            ["runs/new"],
        ),
        _use(
            "import results/found.trec --gold results/qrels.tsv --out runs/new --json",
            {"results/found.trec": THEIRS, "results/qrels.tsv": THEIRS},
            ["runs/new"],
        ),
    ),
    "train": (
        _use(
            "train recipe.yaml --out new --json -q",
            {**_CHECKPOINT, **_DEV, "recipe.yaml": THEIRS, "corpus.txt": THEIRS, "../cache/tokens/*/*": OURS},
            ["new", "../cache/tokens"],
            again=("train", "--resume", "new", "--json", "-q"),
            is_slow=True,
        ),
        _use(
            "train --resume stopped --json -q",
            {
                "stopped/training/start.json": OURS,
                "stopped/training/state.pt": OURS,
                "stopped/training/checkpoints/*/model.safetensors": OURS,
                "stopped/training/checkpoints/*/config.json": OURS,
                "stopped/training/checkpoints/*/modules.json": OURS,
                "stopped/log.jsonl": OURS,
                "stopped/recipe.yaml": OPTIONAL,
            },
            ["stopped", "../cache/tokens"],
            is_slow=True,
        ),
        _use("train recipe.yaml --print", {"recipe.yaml": THEIRS}),
    ),
    "sweep": (
        _use(
            "sweep experiment.yaml --status --json",
            {"experiment.yaml": THEIRS, "recipe.yaml": THEIRS, "corpus.txt": THEIRS},
        ),
    ),
    # What it trains and measures is an experiment, which `sweep` stands for.
    "reproduce": (_use("reproduce --list --json"),),
    "fit": (
        _use(
            "fit whitening -m model --sentences corpus.txt --dimensions 4 --out new --json -q --no-cache",
            {**_CHECKPOINT, "corpus.txt": THEIRS},
            ["new"],
        ),
        _use(
            "fit whitening -m words.txt --sentences STS13 --dimensions 4 --out new --json -q",
            {"words.txt": THEIRS, **_STS13},
            ["new", "../cache/embeddings"],
        ),
        _use(
            "fit flow -m model --sentences corpus.txt --steps 3 --out new --json -q",
            {**_CHECKPOINT, "corpus.txt": THEIRS},
            ["new", "../cache/embeddings"],
        ),
    ),
    "cite": (_use("cite runs/a --json", {"runs/a/run.json": OURS}),),
    "diagnose": (
        _use(
            "diagnose -m model --data pairs.tsv --claim 10 --budget 0 --no-cache --json --out diagnosis",
            {**_CHECKPOINT, "pairs.tsv": THEIRS},
            ["diagnosis"],
            partial=True,
            is_slow=True,
            is_piecewise=True,
        ),
    ),
    "explain": (
        _use(
            "explain runs/s --json -q --out explained",
            {**_record("s"), **_DEV, **_CACHED},
            ["explained", "../cache/embeddings"],
            partial=True,
            is_slow=True,
            is_piecewise=True,
        ),
    ),
    "length-bias": (_use("length-bias runs/a --json", _record("a")),),
    "length-collapse": (_use("length-collapse runs/s --json", _EMBEDDED, ["../cache/embeddings"]),),
    "dimensions": (_use("dimensions runs/s --json", _EMBEDDED, ["../cache/embeddings"]),),
    "hubness": (_use("hubness runs/s -k 2 --json", _EMBEDDED, ["../cache/embeddings"]),),
    "geometry": (
        _use("geometry runs/a --task STS-B --json", {**_record("a"), **_DEV, **_CACHED}, ["../cache/embeddings"]),
    ),
    "pair-kinds": (_use("pair-kinds runs/k --data-dir . --json", _record("k")),),
    "spectrum": (_use("spectrum runs/a --task STS-B --json", {**_record("a"), **_DEV}, ["../cache/embeddings"]),),
    "density": (_use("density runs/s --task STS-B --json", {**_record("s"), **_DEV}, ["../cache/embeddings"]),),
    "evalrank": (_use("evalrank runs/a --task STS-B --json", {**_record("a"), **_DEV}, ["../cache/embeddings"]),),
    "stability": (
        _use(
            "stability -m model --task STS-B --split dev --text senteval --json",
            {**_CHECKPOINT, **_DEV},
            ["../cache/embeddings"],
        ),
    ),
    "compress": (
        _use("compress runs/s --draws 1 --json", {**_record("s"), **_DEV, **_CACHED}, ["../cache/embeddings"]),
    ),
    "ties": (_use("ties runs/a --json", _record("a")),),
    "repetition-bias": (
        _use(
            "repetition-bias -m model --corpus corpus.txt --queries 3 --seeds 1 --overlap 1-100 --json",
            {**_CHECKPOINT, "corpus.txt": THEIRS},
            ["../cache/embeddings"],
        ),
    ),
    "probes": (
        _use(
            "probes -m model --triples triples.tsv --json",
            {**_CHECKPOINT, "triples.tsv": THEIRS},
            ["../cache/embeddings"],
        ),
    ),
    "embed": (
        _use(
            "embed corpus.txt -m model --out made.npy --json",
            {**_CHECKPOINT, "corpus.txt": THEIRS},
            ["made.npy", "made.npy.json"],
        ),
    ),
    "retrieve": (
        _use(
            "retrieve -m model --corpus embedded.npy --query owl --json",
            # A plain NumPy file, of which the shape is checked.
            {**_CHECKPOINT, "corpus.txt": THEIRS, "embedded.npy": THEIRS, "embedded.npy.json": OURS},
            ["../cache/embeddings"],
        ),
        _use(
            "retrieve -m model --corpus corpus.txt --query owl --json",
            {**_CHECKPOINT, "corpus.txt": THEIRS},
            ["../cache/embeddings"],
        ),
    ),
    "doctor": (_use("doctor --json", {**_TOLD, **dict.fromkeys(_STS13, OPTIONAL)}, codes=(1,)),),
    "data list": (_use("data list --json", dict.fromkeys(_STS13, OPTIONAL)),),
    # Nobody answers there.
    "data get": (_use("data get senteval --to got -q", writes=["got"], codes=(2,)),),
    "data verify": (_use("data verify --json", dict.fromkeys(_STS13, OPTIONAL), codes=(1,)),),
    "data overlap": (_use("data overlap STS13 --corpus corpus.txt --json", _STS13 | {"corpus.txt": THEIRS}),),
    "data describe": (_use("data describe pairs.csv --json -q", {"pairs.csv": THEIRS}),),
    "cache info": (_use("cache info --json", _TOLD),),
    "cache clear": (_use("cache clear --yes", _CACHED, ["../cache"]),),
    "published list": (_use("published list --json"),),
    "published show": (_use("published show mocose-acl2022-1 --json"),),
    "published row": (_use("published row esimcse-bert-base --json"),),
}
"""The uses of each command, by its name as typed."""
