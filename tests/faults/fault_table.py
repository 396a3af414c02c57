"""The commands that faults are planted in: how each is run, and which files it reads and writes.

A new command needs a row here; a test fails without one.
"""

from dataclasses import dataclass

CHECKPOINT = "model/config.json model/model.safetensors model/tokenizer.json"
CACHED = "../cache/embeddings/*.vectors"
EXTRA_CHECKPOINT = "model/tokenizer_config.json"
STS13 = "data/downstream/STS/STS13-en-test/STS.input.OnWN.txt data/downstream/STS/STS13-en-test/STS.gs.OnWN.txt"
FITTED = ("fit.json", "fit.safetensors", "2_Dense/model.safetensors", "modules.json", "model.safetensors")
RUN_S = f"runs/s/run.json runs/s/items.parquet {CACHED}"


@dataclass(frozen=True)
class Command:
    """A command line, run in a folder with small files of every kind.

    Attributes:
        line: the words after `stsbench`.
        ours: patterns of files that stsbench wrote: a damaged one is refused or makes no difference.
        yours: files of the user: another content gives another answer.
        optional: files that the command also runs without.
        writes: the files and folders it writes, besides the cache.
        codes: exit codes of an answer, besides 0.
        is_partial: whether it prints and writes what it can before it reports an error.
        resume: the command line to use after an interruption, if the same is refused.
        is_slow: whether the gate leaves it out.
    """

    line: str
    ours: str = ""
    yours: str = ""
    optional: str = ""
    writes: str = ""
    codes: tuple[int, ...] = ()
    is_partial: bool = False
    resume: str = ""
    is_slow: bool = False

    @property
    def words(self) -> list[str]:
        """The arguments of `stsbench`."""
        return self.line.split()


def _run(what: str, yours: str = "", ours: str = "") -> Command:
    return Command(f"run {what} --out runs/new --json", ours, yours, writes="runs/new")


def _record(name: str) -> str:
    return f"runs/{name}/run.json runs/{name}/items.parquet"


def _import(what: str, yours: str) -> Command:
    return Command(f"import {what} --out runs/new --json", yours=yours, writes="runs/new")


def _explain(name: str, ours: str = RUN_S, options: str = "") -> Command:
    return Command(f"explain {name} {'runs/a' if ours == _record('a') else 'runs/s'} {options} --json", ours)


TABLE = [
    Command(
        "run -m model --data pairs.tsv --no-cache --out runs/new --json",
        yours=f"pairs.tsv {CHECKPOINT}",
        optional=EXTRA_CHECKPOINT,
        writes="runs/new",
    ),
    _run("-m model --data pairs.tsv", ours=CACHED),
    _run("-m model --data pairs.csv", "pairs.csv"),
    _run("-m model --data pairs.jsonl", "pairs.jsonl"),
    _run("-m model --data pairs.parquet", "pairs.parquet"),
    _run("-m model --template template.yaml --data pairs.csv", "template.yaml"),
    _run("-m words.txt --data pairs.csv", "words.txt"),
    _run("--vectors vectors.npy --sentences sentences.txt --data pairs.csv", "vectors.npy sentences.txt"),
    _run("--encoder-module mymodel:encode --tasks STS13", f"mymodel.py {STS13}"),
    _run("-m model --tasks TREC --kfold 2", "data/downstream/TREC/TREC_10.label"),
    _run("-m white --data pairs.tsv --no-cache", ours=" ".join(f"white/{name}" for name in FITTED)),
    _run("-m flow --data pairs.tsv --no-cache", ours="flow/fit.json flow/fit.safetensors model/model.safetensors"),
    Command("run -m model --data pairs.tsv --out runs/a --json", _record("a"), writes="runs/a"),
    _import("results/senteval.json", "results/senteval.json"),
    _import("results/mteb.json", "results/mteb.json"),
    _import("results/items.parquet", "results/items.parquet"),
    _import("similarities.txt --gold pairs.csv", "similarities.txt"),
    _import("similarities.npy --gold pairs.csv", "similarities.npy"),
    _import("results/found.trec --gold results/qrels.tsv", "results/found.trec results/qrels.tsv"),
    Command("show runs/a --json", "runs/a/run.json"),
    Command("check runs/a --baseline runs/b --json", _record("a"), codes=(1, 3), is_partial=True),
    Command("check runs/b --baseline runs/a --junit check.xml", _record("a"), "", "", "check.xml", (1, 3), True),
    Command("compare runs/a runs/b --json --figure difference.svg", _record("a"), writes="difference.svg"),
    Command("compare runs/t runs/t --json", _record("t")),
    Command("compare --a runs/a runs/c --number 50 --json", _record("a")),
    Command("rank runs/a runs/b --json", _record("a")),
    Command("plan runs/a runs/b --difference 0.5 --json", _record("a")),
    Command(
        "diagnose -m model --data pairs.tsv --claim 10 --budget 0 --no-cache --json",
        yours=f"pairs.tsv {CHECKPOINT}",
        optional=EXTRA_CHECKPOINT,
        is_slow=True,
    ),
    # Four analyses need STS-B.
    Command("explain runs/s --json", RUN_S, codes=(2,), is_partial=True, is_slow=True),
    Command("length-bias runs/a --json", _record("a")),
    _explain("pair-kinds"),
    _explain("length-collapse"),
    _explain("geometry", options="--task sample"),
    _explain("spectrum", options="--task sample"),
    _explain("dimensions"),
    _explain("density", options="--task sample"),
    _explain("evalrank", options="--task sample"),
    _explain("compress", options="--draws 1"),
    _explain("ties", _record("a")),
    _explain("threshold", _record("a")),
    _explain("hubness", options="-k 2"),
    Command("explain stability -m model --task sample --json", yours=CHECKPOINT, optional=EXTRA_CHECKPOINT),
    Command(
        "explain repetition-bias -m model --corpus corpus.txt --queries 3 --seeds 1 --json",
        yours=f"corpus.txt {CHECKPOINT}",
    ),
    Command("explain probes -m model --triples triples.tsv --json", yours=f"triples.tsv {CHECKPOINT}"),
    Command(
        "explain retrieve -m model --corpus embedded.npy --query owl --json",
        "embedded.npy.json",
        f"corpus.txt embedded.npy {CHECKPOINT}",
    ),
    Command(
        "explore runs/a runs/b --data pairs.tsv --out both.html -q", _record("a"), "pairs.tsv", writes="both.html"
    ),
    Command("board runs --out all.html", _record("a"), writes="all.html"),
    Command(
        "report runs/a runs/b --no-analyses --out report -q", _record("a"), writes="report"
    ),
    Command("report runs/a --model-card --out card.md", _record("a"), writes="card.md"),
    Command(
        "train recipe.yaml --out new --json -q",
        "../cache/tokens/*/*",
        f"recipe.yaml corpus.txt {CHECKPOINT}",
        EXTRA_CHECKPOINT,
        "new",
        resume="train --resume new --json -q",
        is_slow=True,
    ),
    Command(
        "train --resume stopped --json -q",
        "stopped/training/start.json stopped/training/state.pt stopped/log.jsonl "
        "stopped/training/checkpoints/*/model.safetensors stopped/training/checkpoints/*/config.json",
        optional="stopped/recipe.yaml",
        writes="stopped",
        resume="train --resume stopped --json -q",
        is_slow=True,
    ),
    Command("sweep experiment.yaml --status --json", yours="experiment.yaml recipe.yaml corpus.txt"),
    Command("reproduce --list --json"),
    Command(
        "embed corpus.txt -m model --out made.npy --json",
        yours=f"corpus.txt {CHECKPOINT}",
        writes="made.npy made.npy.json",
    ),
    Command(
        "fit whitening -m model --sentences corpus.txt --dimensions 4 --out new --json -q --no-cache",
        yours=f"corpus.txt {CHECKPOINT}",
        optional=EXTRA_CHECKPOINT,
        writes="new",
    ),
    Command("fit flow -m model --sentences corpus.txt --steps 3 --out new --json -q", "", "corpus.txt", "", "new"),
    Command("cite runs/a --json", "runs/a/run.json"),
    Command("doctor --json", optional=f"{CACHED} ../cache/tokens/*/* {STS13}", codes=(1,)),
    Command("data list --json", optional=STS13),
    Command("data get senteval --to got -q", writes="got", codes=(2,)),  # without a network
    Command("data verify --json", optional=STS13, codes=(1,)),
    Command("data overlap STS13 --corpus corpus.txt --json", yours=f"corpus.txt {STS13}"),
    Command("data describe pairs.csv --json -q", yours="pairs.csv"),
    Command("cache info --json", optional=f"{CACHED} ../cache/tokens/*/*"),
    Command("cache clear --yes", optional=CACHED, writes="../cache"),
    Command("published list --json"),
    Command("published show mocose-acl2022-1 --json"),
    Command("published row esimcse-bert-base --json"),
]  # fmt: skip

KILLED = ("run -m model --data pairs.tsv", "train", "report", "cache clear", "embed")
"""How the commands begin that are killed and interrupted."""

SCRIPTS = {
    "mymodel.py": "def encode(sentences):\n    return [[len(s), s.count('a'), 1] for s in sentences]\n",
    "template.yaml": "title: a test\ntexts: 'owl {sentence}'\nrules: [strip]\npooling: avg\n",
    "recipe.yaml": """\
name: tiny
base: model
corpus: {path: corpus.txt, max_length: 12}
pooling: avg
dropout: 0.1
objective: {temperature: 0.05}
optimiser: {batch: 8, learning_rate: 1.0e-3}
selection: {task: "sample", every: 2}
saving: {every: 2, keep: 1}
log_every: 1
seed: 7
""",
    "experiment.yaml": """\
name: small
recipe: recipe.yaml
corpus: corpus.txt
axes:
  row:
    measured: {checkpoint: model, pooling: avg}
    trained: {optimiser.batch: 16}
seeds: [1, 2]
measure: {tasks: sample}
""",
}

WHOLE = ("-1", "0", "9223372036854775808", "1" + "0" * 5000, "1.5", "nan", "")
REAL = ("nan", "inf", "-inf", "1e999", "-1", "0", "1e308", "1e-320", "x", "")
PATHS = (
    *("", ".", "nowhere/at/all", "pairs.tsv", "runs/a/run.json/inside", "pipe", "~nobody-of-that-name/x"),
    *("x" * 300, "one\nline\nmore", "\x1b[31mred", "half\udcff", "ends.pdf"),
)
TEXTS = (
    *(
        "",
        ",,",
        "a:b:c",
        "{}",
        "[" * 5000,
        "nan",
        "-1",
        "%s%n",
        "../x",
        "one\nline\nmore",
        "\x1b[2J\x07",
        "\u202eevil",
    ),
    *("half\udcff", "x" * 20000, "*", "&a [*a]", "!!python/object/apply:os.system [true]"),
)
UNDEFINED = ("nan", "inf", "-inf", "1e999")
"""Numbers that every option refuses."""
