"""Known recipes say what the papers say; a mistake in a recipe is told with its line."""

import re
from fnmatch import fnmatch
from functools import cache

import pytest
import yaml

import stsbench as sb
from stsbench.training.recipe import as_yaml, read_recipe, recipe_names, remarks_on_tests

known = cache(read_recipe)
"""A recipe that comes with stsbench; each is read once for all tests here."""

BACKBONES = ("bert-base", "bert-large", "roberta-base", "roberta-large")


def test_all_the_recipes_are_there_and_valid():
    families = ("simcse", "sup-simcse", "simcse-mlm", "esimcse")
    expected = {f"{family}-{backbone}" for family in families for backbone in BACKBONES}
    expected |= {f"esimcse-{backbone}-released" for backbone in BACKBONES}
    expected |= {
        "mocose-bert-base",
        "mocose-bert-large",
        "mocose-bert-base-released",
        "gaussian-dropout-bert-base",
    }
    expected |= {f"multitask-bert-base{which}" for which in ("", "-phases", "-test-pairs")} | {"minilm-multitask"}
    expected |= {f"minilm-{method}" for method in ("simcse", "esimcse", "mocose", "gaussian")}
    expected |= {"consert-bert-base", "consert-bert-large", "demo", "demo-mocose", "demo-gaussian"}
    expected |= {"simcse-ablations", "esimcse-ablations", "mocose-ablations"}
    assert {name for name in recipe_names() if ":" not in name} == expected
    for name in recipe_names():
        assert known(name).name == name.replace(":", "-")


def test_variants_are_read_by_name_from_a_file_and_extended_and_a_mistake_is_told_with_its_line(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "extends: simcse-bert-base\nname: mine\nvariants:\n  hot: {objective: {temperature: 0.1}}\n"
        "  bad:\n    optimiser: {bacth: 3}\n",
        encoding="utf-8",
    )
    hot = read_recipe(f"{path}:hot")
    assert (hot.name, hot.objective.temperature) == ("mine-hot", 0.1)
    assert read_recipe(path).objective.temperature == 0.05
    (tmp_path / "other.yaml").write_text("extends: mine.yaml:hot\nname: other\n", encoding="utf-8")
    assert read_recipe(tmp_path / "other.yaml").objective.temperature == 0.1
    assert read_recipe(f"{path}:hot", ["objective.temperature=0.2"]).objective.temperature == 0.2
    with pytest.raises(
        sb.UserError, match=r"mine.yaml, line 6: unknown key 'optimiser.bacth'; did you mean 'batch'"
    ):
        read_recipe(f"{path}:bad")
    with pytest.raises(sb.UserError, match=r"mine.yaml has no variant 'hto': it has hot, bad"):
        read_recipe(f"{path}:hto")
    with pytest.raises(sb.UserError, match=r"unknown recipe 'simcse-ablations:crop-1': did you mean .*:crop-10"):
        read_recipe("simcse-ablations:crop-1")


def test_the_list_names_every_variant_with_what_it_is():
    from stsbench.training.recipe import recipe_list

    rows = dict(recipe_list().itertuples(index=False))
    assert tuple(rows) == recipe_names()
    assert rows["simcse-ablations:crop-10"] == "table 2: crop 10 %"
    assert all(rows.values())


VALUES = """
# methods, section 7
simcse-bert-base: {optimiser.batch: 64, optimiser.learning_rate: 3.0e-5}
simcse-bert-large: {optimiser.batch: 64, optimiser.learning_rate: 1.0e-5}
simcse-roberta-base: {optimiser.batch: 512, optimiser.learning_rate: 1.0e-5}
simcse-roberta-large: {optimiser.batch: 512, optimiser.learning_rate: 3.0e-5}
simcse-[br]*: {objective.temperature: 0.05, corpus.max_length: 32, optimiser.epochs: 1,
  pooling: cls_before_pooler, head.kind: dense-tanh, head.evaluate: false}
simcse-mlm-*: {objective.mlm.weight: 0.1, objective.mlm.tied: true}
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


def test_the_mlm_recipes_have_the_optimiser_of_simcse():
    for backbone in BACKBONES:
        assert known(f"simcse-mlm-{backbone}").optimiser == known(f"simcse-{backbone}").optimiser


def test_every_number_in_a_recipe_has_its_source_or_reason_beside_it():
    from stsbench.training import recipe as recipe_module

    for name in recipe_names():
        for line in recipe_module._find(name)[0].read_text(encoding="utf-8").splitlines()[1:]:
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
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["optimiser"]["accumulate"] == 1


def test_a_recipe_extends_another_and_another_kind_replaces_a_part(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "extends: esimcse-bert-base\nviews:\n  key: {rate: 0.2}\n", encoding="utf-8"
    )
    (tmp_path / "other.yaml").write_text(
        "extends: mine.yaml\nname: other\nviews:\n  key: {kind: word-repetition, rate: 0.1}\n", encoding="utf-8"
    )
    mine, other = read_recipe(tmp_path / "mine.yaml"), read_recipe(tmp_path / "other.yaml")
    assert (mine.views.key.kind, mine.views.key.rate) == ("subword-repetition", 0.2)
    assert (other.views.key.kind, other.views.key.rate, other.optimiser.batch) == ("word-repetition", 0.1, 64)


def test_set_changes_a_value_and_leaves_the_others():
    changes = ["optimiser.learning_rate=1e-4", "negatives.queue.size=64", "views.key=identity"]
    recipe = read_recipe("esimcse-bert-base", changes)
    assert (recipe.optimiser.learning_rate, recipe.negatives.queue.size) == (1e-4, 64)
    assert (recipe.views.key.kind, recipe.target.decay, recipe.optimiser.batch) == ("identity", 0.995, 64)
    assert read_recipe("esimcse-bert-base", ["negatives.queue=null"]).negatives.queue is None


TASK = "tasks={t: {kind: %s, train: t.csv, columns: [a, b%s]%s}}"
CLASSES, SCALE = ", classes: [0, 1]", ", scale: [0, 5]"
MISTAKES = [
    ("optimiser={learnin_rate: 1}", r"unknown key 'optimiser.learnin_rate'; did you mean 'learn"),
    ("temprature=0.1", r"unknown key 'temprature'; did you mean 'temperature'"),
    ("optimiser={batch: many}", r"optimiser.batch: Input should be a valid integer"),
    ("optimiser={batch: 1}", r"optimiser.batch: .*greater than or equal to 2"),
    ("pooling=cls", r"pooling: Input should be 'cls_before_pooler', 'avg', 'max' or 'last'"),
    ("views={key: shuffle}", r"views.key: .*'shuffle'.*'word-repetition'"),
    ("views={key: {kind: word-repetition}}", r"'views.key.rate' is missing"),
    ("negatives={queue: {size: 10}}", r"negatives.queue.size 10 is smaller than optimiser.batch 64"),
    ("corpus={columns: 3}", r"negatives.hard and corpus.columns: 3 go together"),
    ("objective={loss: triplet}", r"objective.loss: .*'info-nce' or 'nt-xent'"),
    ("objective={weight: 0}", r"objective.weight: .*greater than 0"),
    ("objective={loss: nt-xent, similarity: dot}", r"objective.loss nt-xent goes with cosines and in-batch neg"),
    ("objective={temperature: 0}", r"objective.temperature: .*greater than 0"),
    ("objective={temperature: .nan}", r"objective.temperature"),
    ("predictor={output: 8}", "predictor.output is not the width of keys"),
    ("target={encodes: queue}", "target.encodes is queue, and negatives.queue is missing"),
    ("target={encodes: keys, modules: [head]}", "add encoder, of which a target has a copy"),
    ("target={encodes: keys, trained: [projector]}", r"trained \['projector'\]: these have to be among modules"),
    ("negatives.in_batch=false", "negatives.in_batch is false, and negatives.queue is missing"),
    ("negatives.queue={size: 70, initial: 80}", "initial 80 is more than the size, 70"),
    ("negatives.queue={size: 70, uses: [[5, 80]]}", "are not ranges of 0 to 70"),
    ("noise.key.parts=[{kind: token-cutoff, rate: 0.1, count: some}]", "'share'"),
    ("noise.key.parts=[{kind: position-shuffle, padded_to: 64}]", "padded_to 64 is not corpus.max_length, 32"),
    ("noise={masks: shared}\nviews={key: word-deletion}", "noise.masks shared needs the same views"),
    ("optimiser.adam_epsilon=none", "'after_correction' or 'before_correction'"),
    ("corpus.buckets=[5, 4]", r"buckets \[5, 4\] do not ascend"),
    ("views.key={kind: in-turn, views: [identity]}", "'identity'"),
    ("views.key={kind: synonyms}", "'views.key.rate' is missing"),
    ("views.key={kind: masked-insertion, rate: 2, model: a}", "views.key.rate: "),
    ("views.key={kind: masked-insertion, rate: 0.2}", "'views.key.model' is missing"),
    (TASK % ("ranking", "", ""), r"tasks.t: .*'ranking'.*'classification', 'pair-classification', 'reg"),
    (TASK % ("regression", "", SCALE), r"columns \['a', 'b'\]: name two sentences and the label, 3 columns"),
    (TASK % ("classification", ", c", CLASSES), r"columns \['a', 'b', 'c'\]: name a sentence and the lab"),
    (TASK % ("classification", "", CLASSES + ", dev_rows: 5"), "dev_rows: there is no table `dev` to read"),
    (TASK % ("classification", "", ""), "'tasks.t.classes' is missing"),
    (TASK % ("classification", "", ", classes: [1]"), "tasks.t.classes: .*at least 2"),
    (TASK % ("classification", "", CLASSES + ", weight: 0"), "tasks.t.weight: .*greater than 0"),
    (TASK % ("classification", "", CLASSES + ", rate: 0.5"), "tasks.t.rate: .*'always' or 'once'"),
    (TASK % ("classification", "", CLASSES + ", batch: 0"), "tasks.t.batch: .*greater than or equal to 1"),
    (TASK % ("classification", "", CLASSES + ", dropout: 1"), "tasks.t.dropout: .*less than 1"),
    (TASK % ("classification", "", CLASSES + ", delimiter: tab"), "tasks.t.delimiter: .*at most 1 char"),
    (TASK % ("classification", "", CLASSES + SCALE), "unknown key 'tasks.t.scale'"),
    (TASK % ("regression", ", c", ", scale: [5, 0]"), r"scale \[5.0, 0.0\]: name the lowest score first"),
    ("tasks={t: {kind: classification}}", "'tasks.t.train' is missing"),
    ("tasks={a b: {kind: classification, train: t.csv, columns: [a, b], classes: [0, 1]}}", "tasks.a b"),
    ("tasks={contrastive: {kind: classification, train: t, columns: [a, b], classes: [0, 1]}}", "choose another"),
    ("phases=[{takes: [contrastive, t]}]", "phases: phase 1 takes 't', which is none of contrastive"),
    ("phases=[{takes: []}]", "takes: .*at least 1"),
    ("phases=[{takes: [contrastive, contrastive]}]", "a name occurs twice"),
    ("phases=[{takes: [contrastive], epochs: 0}]", "epochs: .*greater than or equal to 1"),
    (TASK % ("classification", "", CLASSES) + "\nphases=[{takes: [contrastive]}]", "phases: none takes 't'"),
    ("labelled.test_pairs=some", "labelled.test_pairs: .*'dropped' or 'kept'"),
    (
        TASK % ("regression", ", c", SCALE) + "\nlabelled={test_pairs: kept}\nselection={task: STS-B:dev}",
        r"labelled.test_pairs is kept, so selection.task has to be another than STS-B",
    ),
    ("corpus.of_tasks=perhaps", "corpus.of_tasks: .*valid boolean"),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_option_or_with_its_line(changes, message, tmp_path):
    overrides = changes.split("\n")
    with pytest.raises(sb.UserError, match=rf"^--set {re.escape(overrides[-1].split('=')[0])}.*{message}"):
        read_recipe("simcse-bert-base", overrides)
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
    ("recipe", "overrides", "message"),
    [
        ("simcse-bert-bsae", (), "unknown recipe 'simcse-bert-bsae': did you mean simcse-bert-base"),
        ("nowhere.yaml", (), "there is no recipe file nowhere.yaml"),
        ("demo", ("seed",), "--set seed: write key=value"),
        (
            "demo",
            ("optimiser.bacth=3",),
            "--set optimiser.bacth=3: unknown key 'optimiser.bacth'; did you mean 'batch'",
        ),
        ("demo", ("seed=[",), r"--set seed=\[: the value is not valid YAML"),
    ],
)
def test_a_mistake_on_the_command_line_is_told_as_one(recipe, overrides, message):
    with pytest.raises(sb.UserError, match=message):
        read_recipe(recipe, overrides)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("objective={temperature: 0}", "objective.temperature: .*greater than 0"),
        ("views.key={kind: word-repetition}", "'views.key.rate' is missing"),
        ("negatives.queue.size=10", "negatives.queue.size 10 is smaller than optimiser.batch 64"),
        ("optimiser.batch=500", "negatives.queue.size 160 is smaller than optimiser.batch 500"),
        ("negatives={hard: {weight: 1}}", "negatives.hard and corpus.columns: 3 go together"),
    ],
)
def test_a_mistake_in_an_override_blames_the_override_not_a_line_of_the_file(override, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "extends: esimcse-bert-base\nname: mine\nobjective: {temperature: 0.1}\nviews: {key: {rate: 0.2}}\n"
        "optimiser: {batch: 64}\nnegatives: {queue: {size: 160}}\n",
        encoding="utf-8",
    )
    with pytest.raises(sb.UserError, match=f"^--set {re.escape(override)}: {message}"):
        read_recipe(path, [override])


def test_changes_are_values_by_their_key():
    recipe = read_recipe("demo", ["seed=3"], {"seed": 4, "corpus.names": ("a: b",), "corpus.path": "1.txt"})
    assert (recipe.seed, recipe.corpus.names, recipe.corpus.path) == (4, ("a: b",), "1.txt")
    with pytest.raises(sb.UserError, match="--set seed=x: seed: "):
        read_recipe("demo", changes={"seed": "x"})


def test_tasks_on_kept_test_pairs_are_selected_on_something_else_and_say_so():
    recipe = read_recipe("multitask-bert-base-test-pairs")
    assert recipe.selection.task == "SICK-R:dev"
    (said,) = remarks_on_tests(recipe)
    assert said.startswith("Trained on test pairs: ")
    assert "paraphrase and similarity" in said
    # One sentence has no pair.
    alone = read_recipe("demo", [TASK % ("classification", "", CLASSES), "labelled.test_pairs=kept"])
    assert remarks_on_tests(alone) == []
