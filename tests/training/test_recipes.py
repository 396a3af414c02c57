"""Known recipes say what the papers say; a mistake in a recipe is told with its line."""

import re
from fnmatch import fnmatch
from functools import cache

import pytest
import yaml

import stsbench as sb
from stsbench.training.recipe import (
    _find,
    as_yaml,
    read_change,
    read_recipe,
    recipe_list,
    recipe_names,
    remarks_on_tests,
)

known = cache(read_recipe)
"""A recipe that comes with stsbench; each is read once for all tests here."""


def test_every_recipe_is_valid_and_listed_with_what_it_is():
    rows = dict(recipe_list().itertuples(index=False))
    assert tuple(rows) == recipe_names()
    assert rows["simcse-ablations:crop-10"] == "table 2: crop 10 %"
    assert all(rows.values())
    for name in recipe_names():
        assert known(name).name == name.replace(":", "-")


VALUES = """
# methods, section 7
simcse-bert-base: {optimiser.batch: 64, optimiser.learning_rate: 3.0e-5}
simcse-bert-large: {optimiser.batch: 64, optimiser.learning_rate: 1.0e-5}
simcse-roberta-base: {optimiser.batch: 512, optimiser.learning_rate: 1.0e-5}
simcse-roberta-large: {optimiser.batch: 512, optimiser.learning_rate: 3.0e-5}
simcse-[br]*: {objective.temperature: 0.05, corpus.max_length: 32, optimiser.epochs: 1,
  pooling: cls_before_pooler, head.kind: dense-tanh, head.evaluate: false}
simcse-mlm-*: {objective.mlm.weight: 0.1}
sup-simcse-*: {optimiser.batch: 512, optimiser.epochs: 3, head.evaluate: true, corpus.columns: 3,
  negatives.hard.weight: 1.0}
sup-simcse-*-base: {optimiser.learning_rate: 5.0e-5}
sup-simcse-*-large: {optimiser.learning_rate: 1.0e-5}
esimcse-bert-base: {optimiser.learning_rate: 3.0e-5, dropout: 0.1, views.key.rate: 0.32}
esimcse-bert-large: {optimiser.learning_rate: 1.0e-5, dropout: 0.15, views.key.rate: 0.32}
esimcse-roberta-base: {optimiser.learning_rate: 1.0e-5, dropout: 0.1, views.key.rate: 0.30}
esimcse-roberta-large: {optimiser.learning_rate: 1.0e-5, dropout: 0.15, views.key.rate: 0.28}
esimcse-[br]*e: {optimiser.batch: 64, views.key.variant: paper, views.query.kind: identity,
  negatives.queue.size: 160, negatives.queue.emptied: never, negatives.queue.keeps: first_rows,
  target.decay: 0.995, target.update: after_step, target.modules: [encoder, head], target.start: copy}
esimcse-*-released: {views.key.variant: released, negatives.queue.emptied: each_epoch,
  negatives.queue.keeps: last_rows, target.update: before_loss, target.modules: [encoder], target.start: random}
esimcse-bert-*-released: {negatives.queue.size: 160, dropout: 0.1}
esimcse-roberta-base-released: {negatives.queue.size: 160, dropout: 0.1}
esimcse-roberta-large-released: {negatives.queue.size: 128, dropout: 0.15}
mocose-bert-base: {optimiser.batch: 64, optimiser.learning_rate: 3.0e-5, optimiser.weight_decay: 1.0e-6,
  noise.adversarial.gradient: own, target.trained: [], projector.norm_epsilon: 1.0e-5,
  objective.similarity: cosine, optimiser.adam_epsilon: after_correction}
mocose-bert-large: {optimiser.batch: 32, optimiser.learning_rate: 1.0e-5}
mocose-bert-*e: &mocose {target.decay.start: 0.75, target.decay.end: 0.95, target.decay.steps: null,
  target.encodes: keys, target.embeddings: shared, target.gradient: false, negatives.queue.size: 512,
  negatives.queue.initial: 128, projector.layers: 1, predictor.layers: 2, predictor.ends: tanh,
  negatives.in_batch: false, noise.adversarial.step: 5.0e-9}
minilm-mocose: *mocose
mocose-bert-base-released: {target.decay.end: 1.0, target.decay.steps: 15000, target.decay.after: returns,
  negatives.in_batch: true, negatives.queue.initial: 256, target.gradient: true, target.update: before_loss,
  target.trained: [projector], noise.adversarial.gradient: previous, precision: fp32,
  projector.norm_epsilon: 1.0e-12, predictor.norm_epsilon: 1.0e-12, objective.similarity: cosine}
mocose-bert-base:equation-3: {objective.similarity: dot}
mocose-*:token-cutoff: {noise.query.parts.0.kind: token-cutoff, noise.key.parts.0.rate: 0.1,
  noise.key.parts.0.count: at_least_one, noise.adversarial: null}
mocose-*:position-shuffle: {noise.query.parts.0.kind: position-shuffle, noise.key.parts.0.kind: position-shuffle}
mocose-bert-base-released:[pt]*: {noise.query.parts.0.padded_to: 32, noise.key.parts.0.padded_to: 32}
"*-released": {optimiser.adam_epsilon: before_correction}
# the public code
consert-bert-base: {noise.query.parts.0.kind: feature-cutoff, noise.query.parts.0.rate: 0.2,
  noise.query.parts.0.count: share, noise.query.parts.0.place: layer, noise.key.parts.0.kind: position-shuffle,
  dropout: 0.0, pooling: avg, head.kind: none, objective.loss: nt-xent, objective.temperature: 0.1,
  objective.weight: 0.3, optimiser.batch: 96, optimiser.epochs: 10, optimiser.learning_rate: 5.0e-7,
  optimiser.warmup: 0.1, optimiser.weight_decay: 0.01, corpus.max_length: 67, corpus.of_tasks: true, seed: 1}
consert-bert-large: {optimiser.epochs: 25, dropout: null, noise.query.parts: []}
# the reports
gaussian-dropout-bert-base: &gaussian {noise.query.parts.0.kind: gaussian-replacement,
  noise.query.parts.0.rate: 0.1, noise.query.parts.0.std: 0.1,
  noise.key.parts.0.kind: gaussian-replacement, noise.key.parts.0.rate: 0.1,
  noise.key.parts.0.std: 0.1, optimiser.batch: 8, optimiser.learning_rate: 1.0e-5, optimiser.epochs: 3,
  head.kind: none}
multitask-bert-base*: *gaussian
multitask-bert-base: {dropout: 0.1, pooling: cls_before_pooler, phases: [], tasks.sentiment.kind: classification,
  tasks.paraphrase.kind: pair-classification, tasks.similarity.kind: regression, tasks.sentiment.dropout: 0.1,
  tasks.paraphrase.dropout: 0.1, tasks.similarity.dropout: 0.1, tasks.sentiment.weight: 1.0,
  tasks.paraphrase.weight: 1.0, tasks.similarity.weight: 1.0, tasks.sentiment.rate: once,
  tasks.paraphrase.rate: once, tasks.similarity.rate: once}
multitask-bert-base-phases: {phases.0.takes: [contrastive], phases.1.takes: [paraphrase, sentiment, similarity]}
"""


@pytest.mark.parametrize(("pattern", "values"), yaml.safe_load(VALUES).items(), ids=yaml.safe_load(VALUES))
def test_the_values_are_those_of_the_papers_and_of_their_code(pattern, values):
    names = [name for name in recipe_names() if (":" in name) == (":" in pattern) and fnmatch(name, pattern)]
    assert names
    for name in names:
        recipe = yaml.safe_load(as_yaml(known(name)))
        for key, value in values.items():
            part = recipe
            for step in key.split("."):
                part = part[int(step) if isinstance(part, list) else step]
            assert part == value, (name, key)


def test_every_number_in_a_recipe_has_its_source_or_reason_beside_it():
    for name in recipe_names():
        for line in _find(name)[0].read_text(encoding="utf-8").splitlines()[1:]:
            value, _, comment = line.partition("#")
            number = any(character.isdigit() for character in value.partition(":")[2]) and "name:" not in value
            if number and "base:" not in value and "extends:" not in value and value.strip() != "columns: 1":
                assert comment.strip(), f"{name}: {line}"


def test_a_recipe_printed_in_full_reads_back_as_itself(tmp_path):
    variants = {"simcse-ablations:crop-10-mlm-15", "mocose-ablations:slice-ends", "consert-bert-base:one-side"}
    for name in {name for name in recipe_names() if ":" not in name} | variants:
        path = tmp_path / "printed.yaml"
        path.write_text(as_yaml(known(name)), encoding="utf-8")
        assert read_recipe(path) == known(name)


EXTENDING = """
extends: esimcse-bert-base
name: mine
views: {key: {rate: 0.2}}
objective: {temperature: 0.1}
optimiser: {batch: 64}
negatives: {queue: {size: 160}}
variants:
  words: {views: {key: {kind: word-repetition, rate: 0.1}}}
  bad:
    optimiser: {bacth: 3}
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(EXTENDING, encoding="utf-8")
    return path


def test_changes_go_key_by_key_and_another_kind_replaces_a_part(mine):
    (mine.parent / "other.yaml").write_text("extends: mine.yaml:words\nname: other\nseed: 9\n", encoding="utf-8")
    changes = ["optimiser.learning_rate=1e-4", "views.key=identity", "negatives.queue=null", "seed=3"]
    values = {"seed": 4, "corpus.names": ("a: b",), "corpus.path": "1.txt"}
    plain, words, other, changed = (
        read_recipe(mine),
        read_recipe(f"{mine}:words"),
        read_recipe(mine.parent / "other.yaml"),
        read_recipe(mine, changes, values),
    )
    assert [recipe.name for recipe in (plain, words, other)] == ["mine", "mine-words", "other"]
    assert (plain.views.key.kind, plain.views.key.rate) == ("subword-repetition", 0.2)
    assert (words.views.key.kind, words.views.key.rate, words.objective.temperature) == (
        "word-repetition",
        0.1,
        0.1,
    )
    assert other.views == words.views
    assert (other.seed, other.optimiser, other.negatives.queue.size) == (9, plain.optimiser, 160)
    assert (changed.views.key.kind, changed.negatives.queue, changed.target) == ("identity", None, None)
    assert (changed.optimiser.learning_rate, changed.optimiser.batch) == (1e-4, 64)
    assert (changed.seed, changed.corpus.names, changed.corpus.path) == (4, ("a: b",), "1.txt")


TASK = "tasks={t: {kind: %s, train: t.csv, columns: [a, b%s]%s}}"
CLASSES, SCALE = ", classes: [0, 1]", ", scale: [0, 5]"
MISTAKES = [
    ("optimiser={learnin_rate: 1}", r"unknown key 'optimiser.learnin_rate'; did you mean 'learn"),
    ("temprature=0.1", r"unknown key 'temprature'; did you mean 'temperature'"),
    ("optimiser={batch: 1}", r"optimiser.batch: .*greater than or equal to 2"),
    ("pooling=cls", r"pooling: Input should be 'cls_before_pooler', 'avg', 'max' or 'last'"),
    ("views={key: shuffle}", r"views.key: .*'shuffle'.*'word-repetition'"),
    ("views={key: {kind: word-repetition}}", r"'views.key.rate' is missing"),
    ("negatives={queue: {size: 10}}", r"negatives.queue.size 10 is smaller than optimiser.batch 64"),
    ("corpus={columns: 3}", r"negatives.hard and corpus.columns: 3 go together"),
    (
        "objective={loss: nt-xent, similarity: dot}",
        r"objective.loss nt-xent works only with cosines and in-batch neg",
    ),
    ("objective={temperature: .nan}", r"objective.temperature"),
    ("predictor={output: 8}", "predictor.output is not the width of keys"),
    ("target={encodes: queue}", "target.encodes is queue, and negatives.queue is missing"),
    ("target={encodes: keys, modules: [head]}", "add encoder, of which a target has a copy"),
    ("target={encodes: keys, trained: [projector]}", r"trained \['projector'\]: these have to be among modules"),
    ("negatives.in_batch=false", "negatives.in_batch is false, and negatives.queue is missing"),
    ("negatives.queue={size: 70, initial: 80}", "initial 80 is more than the size, 70"),
    ("negatives.queue={size: 70, uses: [[5, 80]]}", "are not ranges of 0 to 70"),
    ("noise.key.parts=[{kind: position-shuffle, padded_to: 64}]", "padded_to 64 is not corpus.max_length, 32"),
    ("noise={masks: shared}\nviews={key: word-deletion}", "noise.masks shared needs the same views"),
    ("corpus.buckets=[5, 4]", r"buckets \[5, 4\] do not ascend"),
    ("views.key={kind: in-turn, views: [identity]}", "'identity'"),
    ("views.key={kind: masked-insertion, rate: 0.2}", "'views.key.model' is missing"),
    (TASK % ("ranking", "", ""), r"tasks.t: .*'ranking'.*'classification', 'pair-classification', 'reg"),
    (TASK % ("regression", "", SCALE), r"columns \['a', 'b'\]: name two sentences and the label, 3 columns"),
    (TASK % ("classification", ", c", CLASSES), r"columns \['a', 'b', 'c'\]: name a sentence and the lab"),
    (TASK % ("classification", "", CLASSES + ", dev_rows: 5"), "dev_rows: there is no table `dev` to read"),
    (TASK % ("classification", "", ""), "'tasks.t.classes' is missing"),
    (TASK % ("classification", "", CLASSES + ", delimiter: tab"), "tasks.t.delimiter: .*at most 1 char"),
    (TASK % ("classification", "", CLASSES + SCALE), "unknown key 'tasks.t.scale'"),
    (TASK % ("regression", ", c", ", scale: [5, 0]"), r"scale \[5.0, 0.0\]: name the lowest score first"),
    ("tasks={a b: {kind: classification, train: t.csv, columns: [a, b], classes: [0, 1]}}", "tasks.a b"),
    ("tasks={contrastive: {kind: classification, train: t, columns: [a, b], classes: [0, 1]}}", "choose another"),
    ("phases=[{takes: [contrastive, t]}]", "phases: phase 1 takes 't', expected contrastive"),
    ("phases=[{takes: [contrastive, contrastive]}]", "a name occurs twice"),
    (TASK % ("classification", "", CLASSES) + "\nphases=[{takes: [contrastive]}]", "phases: none takes 't'"),
    ("labelled.test_pairs=some", "labelled.test_pairs: .*'dropped' or 'kept'"),
    (
        TASK % ("regression", ", c", SCALE) + "\nlabelled={test_pairs: kept}\nselection={task: STS-B:dev}",
        r"labelled.test_pairs is kept, so selection.task has to be another than STS-B",
    ),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_option_or_with_its_line(changes, message, tmp_path):
    overrides = changes.split("\n")
    with pytest.raises(sb.UserError, match=rf"^--set {re.escape(overrides[-1].split('=')[0])}.*{message}"):
        read_recipe("simcse-bert-base", overrides)
    with pytest.raises(sb.UserError, match=rf"^(recipe simcse-bert-base: |(?!--set)).*{message}"):
        read_recipe("simcse-bert-base", dict(map(read_change, overrides)))
    pairs = [override.split("=", 1) for override in overrides]
    if all("." not in key for key, _ in pairs):
        path = tmp_path / "mine.yaml"
        lines = ["extends: simcse-bert-base", *(f"{key}: {value}" for key, value in pairs)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with pytest.raises(sb.UserError, match=rf"mine.yaml, line {len(lines)}: .*{message}"):
            read_recipe(path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("seed: 1\nseed: 2", ", line 3: 'seed' occurs twice"),
        ("seed: [1", r", line \d: not valid YAML"),
        ("seed: \x01", " is not valid YAML"),
        ("variants: [a]", ", line 2: variants: write a mapping from names to changes"),
        ("variants:\n  two words: {seed: 1}", ", line 3: variants.two words: write a name without spaces"),
        ("variants:\n  a: 1", ", line 3: variants.a: write a name without spaces, and a mapping"),
        ("variants:\n  a: {extends: demo}", ", line 3: variants.a: 'extends' does not go into a variant"),
    ],
)
def test_a_broken_file_is_reported_with_its_line(lines, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"extends: demo\n{lines}\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match=f"mine.yaml{message}"):
        read_recipe(path)


@pytest.mark.parametrize(
    ("recipe", "override", "message"),
    [
        ("simcse-bert-bsae", None, "unknown recipe 'simcse-bert-bsae': did you mean simcse-bert-base"),
        ("simcse-ablations:crop-1", None, "unknown recipe 'simcse-ablations:crop-1': did you mean .*:crop-10"),
        ("nowhere.yaml", None, "there is no recipe file nowhere.yaml"),
        ("MINE:bad", None, "MINE, line 11: unknown key 'optimiser.bacth'; did you mean 'batch'"),
        ("MINE:wrods", None, "MINE has no variant 'wrods': did you mean words"),
        ("demo", "seed", "--set seed: write key=value"),
        ("demo", "seed=[", r"--set seed=\[: the value is not valid YAML"),
        # A value of the file is wrong only because of the change.
        ("MINE", "views.key={kind: word-repetition}", "^SET: 'views.key.rate' is missing"),
        ("MINE", "negatives.queue.size=10", "^SET: negatives.queue.size 10 is smaller than optimiser.batch 64"),
        ("MINE", "optimiser.batch=500", "^SET: negatives.queue.size 160 is smaller than optimiser.batch 500"),
        ("MINE", "negatives={hard: {weight: 1}}", "^SET: negatives.hard and corpus.columns: 3 go together"),
    ],
)
def test_a_mistake_is_reported_with_the_name_the_line_or_the_change(recipe, override, message, mine):
    message = message.replace("MINE", re.escape(str(mine))).replace("SET", re.escape(f"--set {override}"))
    with pytest.raises(sb.UserError, match=message):
        read_recipe(recipe.replace("MINE", str(mine)), [override] if override else [])


def test_tasks_on_kept_test_pairs_are_selected_on_something_else_and_say_so():
    recipe = read_recipe("multitask-bert-base-test-pairs")
    assert recipe.selection.task == "SICK-R:dev"
    (said,) = remarks_on_tests(recipe)
    assert said.startswith("Trained on test pairs: ")
    assert "paraphrase and similarity" in said
    # One sentence has no pair.
    alone = read_recipe("demo", [TASK % ("classification", "", CLASSES), "labelled.test_pairs=kept"])
    assert remarks_on_tests(alone) == []
