"""`fit`: the folder that it writes, what comes out of it, and what its record says."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from changed_records import with_digest
from damages import cut, flip
from safetensors.numpy import load_file
from tiny_models import vectors_of

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.corpus import load_corpus
from stsbench.data.sentences import read_sentences
from stsbench.encoders.fitted import FittedEncoder
from stsbench.encoders.load import load_with
from stsbench.encoders.sentence_transformers import write_modules
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import Use
from stsbench.scoring.subjects import vectors_of as vectors_in

NO_INTERVALS = sb.Intervals(None)
TEXTS = [*load_corpus("sample")[:150], *load_corpus("sample")[:30]]
FLOW = {"steps": 8}


@pytest.fixture
def white(tiny_bert, tmp_path):
    return sb.fit("whitening", tiny_bert, sentences=TEXTS, out=tmp_path / "white", dimensions=6).folder


@pytest.fixture
def flow(tiny_bert, tmp_path):
    return sb.fit("flow", tiny_bert, sentences=TEXTS, out=tmp_path / "flow", **FLOW).folder


def test_a_fit_follows_the_models_normalisation_with_its_prompt_and_length(tiny_bert, tmp_path):
    normalised = Path(shutil.copytree(tiny_bert, tmp_path / "normalised"))
    use = Use(pooling="avg", max_length=40, prompt="this is ")
    write_modules(normalised, TransformerSettings(use), 32, [("2_Normalize", "Normalize", None)])
    fitted = sb.fit("whitening", normalised, sentences=TEXTS, out=tmp_path / "w", dimensions=5)
    layer = fitted.folder / "fit.safetensors"
    tensors = {name: value.astype(np.float64) for name, value in load_file(layer).items()}
    unit = vectors_of(normalised, TEXTS[:20]).astype(np.float64)
    expected = unit @ tensors["weight"].T + tensors["bias"]
    np.testing.assert_allclose(vectors_of(fitted.folder, TEXTS[:20]), expected, rtol=1e-3, atol=1e-3)
    identity = sb.load(fitted.folder).identity
    assert (identity.modules, identity.normalize, identity.use.prompt) == (("normalize",), False, "this is ")
    assert identity.use.max_length == 40


@pytest.mark.parametrize("kind", ["white", "flow"])
def test_a_fit_maps_each_sentence_alone_and_its_forward_pass_is_the_planners(kind, request):
    encoder = sb.load(request.getfixturevalue(kind))
    assert isinstance(encoder, FittedEncoder)
    plain = vectors_of(encoder.base, TEXTS)
    assert np.array_equal(encoder.tail(plain)[:3], encoder.tail(plain[:3]))
    assert np.array_equal(vectors_of(encoder, TEXTS), encoder.tail(plain))
    assert encoder.token_budget == encoder.base.token_budget
    assert encoder.identity.weights_sha256 != encoder.base.identity.weights_sha256
    sequences = encoder.tokenize(TEXTS[:4]).sequences
    forward = encoder.forward(sequences, ["avg"])["avg"]
    # A batch changes the last bits of the network's vectors, and a flow amplifies the change.
    np.testing.assert_allclose(forward, vectors_of(encoder, TEXTS[:4]), rtol=1e-2, atol=1e-3)
    with pytest.raises(UserError, match="has no pooling 'max'"):
        encoder.forward(sequences, ["max"])


def test_the_same_seed_writes_the_same_folder(tiny_bert, flow, tmp_path):
    again = sb.fit("flow", tiny_bert, sentences=TEXTS, out=tmp_path / "again", **FLOW)
    names = sorted(path.name for path in flow.iterdir())
    assert names == ["fit.json", "fit.safetensors", "log.jsonl"]
    assert all((again.folder / name).read_bytes() == (flow / name).read_bytes() for name in names)
    steps = [json.loads(line) for line in (flow / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in steps] == list(range(9)) == again.frame["step"].tolist()
    assert again.frame["kept"].sum() == 1
    assert set(again.table()[0].frame) >= {"NLL", "NLL held out"}
    assert again.about.settings["steps"] == 8


def test_a_fit_is_measured_and_its_record_names_it(tiny_bert, tmp_path, toy_data):
    toy = toy_data()
    own = [*toy.pairs["sentence1"], *toy.pairs["sentence2"]]
    fitted = sb.fit("whitening", tiny_bert, sentences=own, out=tmp_path / "own", dimensions=5)
    record = sb.evaluate(sb.load(fitted.folder), toy, intervals=NO_INTERVALS, out=tmp_path / "run")
    by_run = sb.evaluate(sb.load(tiny_bert, whiten=5), toy, intervals=NO_INTERVALS)
    assert record.scores[0].value == pytest.approx(by_run.scores[0].value, abs=1e-4)
    assert (record.model.kind, record.model.fitted) == ("fitted", "whitening5+given-sentences")
    assert "|post:whitening5+given-sentences|" in record.scores[0].signature
    assert any("was fitted for" in note for note in record.notes)
    assert sb.load_run(record.folder).model == record.model
    both = sb.evaluate(sb.load(fitted.folder, whiten=2), toy, intervals=NO_INTERVALS)
    assert both.model.postprocessing == "whitening5+given-sentences,whiten2"
    known = toy.pairs["sentence1"].tolist()
    found = vectors_in(record, [*known, "a new one"]).each()[: len(known)]
    np.testing.assert_allclose(found, vectors_of(fitted.folder, known))
    columns = {"sentence1": "sentence1", "sentence2": "sentence2", "gold": "score"}
    toy.pairs[[*columns]].rename(columns=columns).to_csv(tmp_path / "toy.tsv", sep="\t", index=False)
    diagnosis = sb.diagnose(sb.load(fitted.folder), 99.99, data=tmp_path / "toy.tsv")
    assert any("has no poolings or maximum lengths" in note for note in diagnosis.notes)


@pytest.mark.parametrize("seen", ["both sides", "first sides", "none"])
def test_a_record_counts_the_sentences_of_a_task_that_a_fit_has_seen(seen, tiny_bert, tmp_path, toy_data):
    toy = toy_data()
    first, every = {*toy.pairs["sentence1"]}, {*toy.pairs["sentence1"], *toy.pairs["sentence2"]}
    texts = {"both sides": every, "first sides": [f"{text.upper()} ." for text in first], "none": TEXTS[:40]}
    sb.fit("whitening", tiny_bert, sentences=sorted(texts[seen]), out=tmp_path / "w", dimensions=3)
    record = sb.evaluate(sb.load(tmp_path / "w"), toy, intervals=NO_INTERVALS)
    fitted_on = "the whitening was fitted on"
    expected = {
        "both sides": [f"transductive on toy: {fitted_on} all {len(every)} sentences of toy, without scores."],
        "first sides": [f"{fitted_on} {len(first)} of the {len(every)} sentences of toy, without scores."],
        "none": [],
    }
    assert [note for note in record.notes if "sentences of toy" in note] == expected[seen]


def test_a_fit_keeps_the_pooling_the_length_and_the_mask_of_its_model(tiny_bert, tmp_path):
    layers = load_with(tiny_bert, Use(pooling="avg_first_last", max_length=20, attention_mask="causal"))
    again = sb.load(sb.fit("whitening", layers, sentences=TEXTS, out=tmp_path / "x", dimensions=3).folder)
    use = again.identity.use
    assert (use.pooling, use.max_length, use.attention_mask) == ("avg_first_last", 20, "causal")
    np.testing.assert_allclose(np.cov(vectors_of(again, TEXTS), rowvar=False), np.eye(3), atol=1e-4)


def test_a_fit_is_used_as_it_was_fitted_but_for_the_precision(white, flow):
    for folder in (white, flow):
        for use in ({"pooling": "max"}, {"max_length": 16}, {"template": "promptbert"}, {"prompt_name": "query"}):
            with pytest.raises(UserError, match=f"was fitted with {next(iter(use))} .*: leave out --"):
                sb.load(folder, **use)
        note = sb.load(folder, precision="bf16").notes[1]
        assert "was fitted with precision 'fp32' but is used with 'bf16'" in note
        same = sb.load(folder, pooling="avg", max_length=64, template="none")
        assert same.identity == sb.load(folder).identity


def sealed(file, change):
    file.write_text(json.dumps(with_digest(change(json.loads(file.read_text())))))


def outside(content):
    return content | {"files": content["files"] | {"../outside": "0" * 64}}


DAMAGES = {
    "another version": (
        "fit.json",
        lambda file: sealed(file, lambda content: content | {"version": 1}),
        "of this version of stsbench",
    ),
    "no object": ("fit.json", lambda file: file.write_text("[]"), "fit.json is damaged"),
    "cut": ("fit.json", lambda file: cut(file, 0.1), "fit.json is damaged"),
    "edited": ("fit.json", lambda file: file.write_text(file.read_text().replace("given", "other")), "was edited"),
    "outside": ("fit.json", lambda file: sealed(file, outside), "lacks ../outside"),
    "no tensors": ("fit.safetensors", lambda file: file.unlink(), "lacks fit.safetensors"),
    "a byte": ("fit.safetensors", lambda file: flip(file, 0.99), "is not the file that"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["white", "flow"])
def test_a_damaged_fit_is_reported(kind, damage, request):
    folder = request.getfixturevalue(kind)
    name, harm, message = DAMAGES[damage]
    harm(folder / name)
    with pytest.raises(UserError, match=message):
        vectors_of(sb.load(folder), ["a new sentence"])


def test_a_model_that_is_another_now_is_refused(tiny_bert, tmp_path):
    model = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    folder = sb.fit("flow", model, sentences=TEXTS, out=tmp_path / "f", **FLOW).folder
    flip(model / "model.safetensors", 0.99)
    with pytest.raises(UserError, match=r"was fitted for .*model when its weights_sha256 was"):
        _ = sb.load(folder).identity
    shutil.rmtree(model)
    with pytest.raises(UserError, match=r"was fitted for .*model, which cannot be loaded: "):
        sb.load(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 5}, "steps is not an option of a whitening"),
        ({"sentences": TEXTS[:4], "dimensions": 4}, r"keep fewer \(--dimensions 3\)"),
        ({"sentences": []}, "there is 0"),
        ({"sentences": "STS99"}, "there is no task 'STS99'"),
        ({"sentences": "nowhere.txt"}, "nowhere.txt"),
        ({"sentences": " , "}, "there are no sentences to read"),
        ({"sentences": "STS12"}, "was not found"),
        ({"encoder": lambda texts: [[1.0, len(text)] for text in texts]}, "not a model whose weights have a hash"),
        ({"encoder": "nowhere/at/all"}, "no such model"),
        ({"method": "flow", "dimensions": 3}, "dimensions is not an option of a flow"),
        ({"method": "flow", "steps": 0}, "steps is 0: expected a number above 0"),
        ({"method": "flow", "learning_rate": 0.0}, "learning_rate is 0.0: expected a number above 0"),
        ({"method": "flow", "sentences": TEXTS[:20]}, "needs 40 or more different vectors"),
        ({"method": "whitenin"}, "unknown method 'whitenin': did you mean whitening"),
    ],
)
def test_bad_input_is_reported_and_nothing_is_written(options, message, tiny_bert, tmp_path):
    given = {"method": "whitening", "encoder": tiny_bert, "sentences": TEXTS, "out": tmp_path / "new"} | options
    with pytest.raises(UserError, match=message):
        sb.fit(given.pop("method"), given.pop("encoder"), **given)
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".new*"))


def test_only_a_fit_is_replaced_and_a_fit_is_not_fitted_for(tiny_bert, white, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match=r"other than a fit: .*--out"):
        sb.fit("whitening", tiny_bert, sentences=TEXTS, out=other)
    assert [path.name for path in other.iterdir()] == ["mine.txt"]
    again = sb.fit("whitening", tiny_bert, sentences=TEXTS, out=tmp_path / "again")
    first = [path.read_bytes() for path in sorted(again.folder.iterdir())]
    sb.fit("whitening", tiny_bert, sentences=TEXTS, out=tmp_path / "again")
    assert [path.read_bytes() for path in sorted(again.folder.iterdir())] == first
    with pytest.raises(UserError, match="is fitted already"):
        sb.fit("whitening", white, sentences=TEXTS, out=tmp_path / "new")
    with pytest.raises(UserError, match="white"):
        sb.train("demo", base=white, out=tmp_path / "training")


@pytest.mark.parametrize("benchmark_folder", [8], indirect=True)
def test_a_task_s_name_means_its_sentences(benchmark_folder, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("one\ntwo\n\none\n", encoding="utf-8")
    for name, meant, count in (
        ("sts-b", "STS-B:test", 16),
        ("STS-B:all", "STS-B:all", 48),
        ("STS-B:dev,SICK-R", "STS-B:dev,SICK-R:test", 32),
        (str(file), "mine.txt", 2),
        ("sample-sentences", "sample-sentences", len(load_corpus("sample"))),
    ):
        sentences = read_sentences(name, [benchmark_folder])
        assert (sentences.name, len(sentences.texts)) == (meant, count)
    assert read_sentences("STS12@raw", [benchmark_folder]).texts[0].endswith(" again")
    assert set(read_sentences("sts-b", [benchmark_folder]).texts) < {
        *read_sentences("sts", [benchmark_folder]).texts
    }
    with pytest.raises(UserError, match="leave out ':dev'"):
        read_sentences("TREC:dev", [benchmark_folder])
