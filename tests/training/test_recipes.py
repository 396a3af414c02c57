"""Known recipes say what the papers say; a mistake in a recipe is told with its line."""

import re
from functools import cache

import pytest
import yaml

import stsbench as sb
from stsbench.training import recipe as recipe_module
from stsbench.training.recipe import as_yaml, read_recipe, recipe_names, remarks_on_tests

known = cache(read_recipe)
"""A recipe that comes with stsbench; each is read once for all tests here."""

BACKBONES = ("bert-base", "bert-large", "roberta-base", "roberta-large")

# methods, section 7: batch, learning rate.
SIMCSE = {
    "bert-base": (64, 3e-5),
    "bert-large": (64, 1e-5),
    "roberta-base": (512, 1e-5),
    "roberta-large": (512, 3e-5),
}


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


def test_consert_is_as_its_public_code_says():
    base, large = read_recipe("consert-bert-base"), read_recipe("consert-bert-large")
    (cut,), (shuffle,) = base.noise.query.parts, base.noise.key.parts
    assert (cut.kind, cut.rate, cut.count, cut.place) == ("feature-cutoff", 0.2, "share", "layer")
    assert (shuffle.kind, base.dropout, base.pooling, base.head.kind) == ("position-shuffle", 0.0, "avg", "none")
    assert (base.objective.loss, base.objective.temperature, base.objective.weight) == ("nt-xent", 0.1, 0.3)
    optimiser = base.optimiser
    assert (optimiser.batch, optimiser.epochs, optimiser.learning_rate, optimiser.warmup) == (96, 10, 5e-7, 0.1)
    assert (optimiser.weight_decay, base.corpus.max_length, base.corpus.of_tasks, base.seed) == (0.01, 67, True, 1)
    assert (large.optimiser.epochs, large.dropout, large.noise.query.parts) == (25, None, ())


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


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("variants: [a]", "line 2: variants: write a mapping from names to changes"),
        ("variants:\n  two words: {seed: 1}", "line 3: variants.two words: write a name without spaces"),
        ("variants:\n  a: 1", "line 3: variants.a: write a name without spaces, and a mapping"),
        ("variants:\n  a: {extends: demo}", "line 3: variants.a: 'extends' does not go into a variant"),
    ],
)
def test_broken_variants_are_told_with_their_line(lines, said, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"extends: demo\n{lines}\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match=f"mine.yaml, {said}"):
        read_recipe(path)


def test_the_list_names_every_variant_with_what_it_is():
    from stsbench.training.recipe import recipe_list

    rows = dict(recipe_list().itertuples(index=False))
    assert tuple(rows) == recipe_names()
    assert rows["simcse-ablations:crop-10"] == "table 2: crop 10 %"
    assert all(rows.values())


@pytest.mark.parametrize("backbone", BACKBONES)
def test_the_values_are_those_of_the_papers(backbone):
    simcse, mlm = read_recipe(f"simcse-{backbone}"), read_recipe(f"simcse-mlm-{backbone}")
    assert (simcse.optimiser.batch, simcse.optimiser.learning_rate) == SIMCSE[backbone]
    assert (mlm.optimiser, mlm.objective.mlm.weight, mlm.objective.mlm.tied) == (simcse.optimiser, 0.1, True)
    assert (simcse.objective.temperature, simcse.corpus.max_length, simcse.optimiser.epochs) == (0.05, 32, 1)
    assert (simcse.pooling, simcse.head.kind, simcse.head.evaluate) == ("cls_before_pooler", "dense-tanh", False)
    supervised = read_recipe(f"sup-simcse-{backbone}")
    assert (supervised.optimiser.batch, supervised.optimiser.epochs, supervised.head.evaluate) == (512, 3, True)
    assert supervised.optimiser.learning_rate == (1e-5 if "large" in backbone else 5e-5)
    assert (supervised.corpus.columns, supervised.negatives.hard.weight) == (3, 1.0)
    ours = read_recipe(f"esimcse-{backbone}")
    assert ours.optimiser.batch == 64
    assert ours.optimiser.learning_rate == (3e-5 if backbone == "bert-base" else 1e-5)
    assert ours.dropout == (0.15 if "large" in backbone else 0.1)
    assert ours.views.key.rate == {"roberta-base": 0.30, "roberta-large": 0.28}.get(backbone, 0.32)
    assert (ours.views.key.variant, ours.views.query.kind) == ("paper", "identity")
    queue, target = ours.negatives.queue, ours.target
    assert (queue.size, target.decay, target.update, target.modules) == (
        160,
        0.995,
        "after_step",
        ("encoder", "head"),
    )
    assert (target.start, queue.emptied, queue.keeps) == ("copy", "never", "first_rows")
    released = read_recipe(f"esimcse-{backbone}-released")
    queue, target = released.negatives.queue, released.target
    assert released.views.key.variant == "released"
    assert queue.size == (128 if backbone == "roberta-large" else 160)
    assert (target.update, target.modules, target.start) == ("before_loss", ("encoder",), "random")
    assert (queue.emptied, queue.keeps) == ("each_epoch", "last_rows")
    assert released.dropout == (0.15 if backbone == "roberta-large" else 0.1)


def test_mocoses_values_are_those_of_its_paper_and_of_its_code():
    paper, large = read_recipe("mocose-bert-base"), read_recipe("mocose-bert-large")
    code, laptop = read_recipe("mocose-bert-base-released"), read_recipe("minilm-mocose")
    assert (paper.optimiser.batch, paper.optimiser.learning_rate, paper.optimiser.weight_decay) == (64, 3e-5, 1e-6)
    assert (large.optimiser.batch, large.optimiser.learning_rate) == (32, 1e-5)
    for recipe in (paper, large, laptop):
        assert (recipe.target.decay.start, recipe.target.decay.end, recipe.target.decay.steps) == (
            0.75,
            0.95,
            None,
        )
        assert (recipe.target.encodes, recipe.target.embeddings, recipe.target.gradient) == (
            "keys",
            "shared",
            False,
        )
        assert (recipe.negatives.queue.size, recipe.negatives.queue.initial) == (512, 128)
        assert (recipe.projector.layers, recipe.predictor.layers, recipe.predictor.ends) == (1, 2, "tanh")
        assert not recipe.negatives.in_batch
        assert recipe.noise.adversarial.step == 5e-9
    assert paper.noise.adversarial.gradient == "own"
    assert (code.target.decay.end, code.target.decay.steps, code.target.decay.after) == (1.0, 15_000, "returns")
    assert (code.negatives.in_batch, code.negatives.queue.initial, code.target.gradient) == (True, 256, True)
    assert (code.noise.adversarial.gradient, code.precision) == ("previous", "fp32")
    assert (code.target.update, code.target.trained, paper.target.trained) == ("before_loss", ("projector",), ())


def test_gaussian_dropouts_values_are_those_of_its_report():
    recipe = read_recipe("gaussian-dropout-bert-base")
    for side in (recipe.noise.query, recipe.noise.key):
        assert [(part.kind, part.rate, part.std) for part in side.parts] == [("gaussian-replacement", 0.1, 0.1)]
    assert (recipe.optimiser.batch, recipe.optimiser.learning_rate, recipe.optimiser.epochs) == (8, 1e-5, 3)
    assert recipe.head.kind == "none"


def test_the_multi_task_values_are_those_of_its_report():
    recipe, phases = read_recipe("multitask-bert-base"), read_recipe("multitask-bert-base-phases")
    assert (recipe.optimiser.batch, recipe.optimiser.learning_rate, recipe.optimiser.epochs) == (8, 1e-5, 3)
    assert (recipe.head.kind, recipe.dropout, recipe.pooling) == ("none", 0.1, "cls_before_pooler")
    assert [(name, part.kind, part.measure) for name, part in recipe.tasks.items()] == [
        ("sentiment", "classification", "accuracy"),
        ("paraphrase", "pair-classification", "accuracy"),
        ("similarity", "regression", "pearson"),
    ]
    for part in recipe.tasks.values():
        assert (part.dropout, part.weight, part.rate) == (0.1, 1.0, "once")
    assert recipe.phases == ()
    assert [phase.takes for phase in phases.phases] == [("contrastive",), tuple(recipe.tasks)]
    assert recipe.noise == phases.noise == read_recipe("gaussian-dropout-bert-base").noise


def test_every_number_in_a_recipe_has_its_source_or_reason_beside_it():

    for name in recipe_names():
        for line in recipe_module._find(name).file.read_text(encoding="utf-8").splitlines()[1:]:
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


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("optimiser.learning_rate=1e-4", lambda recipe: recipe.optimiser.learning_rate == 1e-4),
        ("negatives.queue=null", lambda recipe: recipe.negatives.queue is None),
        ("views.key=identity", lambda recipe: recipe.views.key.kind == "identity"),
        ("negatives.queue.size=64", lambda recipe: recipe.negatives.queue.size == 64),
        ("negatives.queue.size=64", lambda recipe: recipe.target.decay == 0.995),
    ],
)
def test_set_changes_one_value(override, value):
    assert value(read_recipe("esimcse-bert-base", [override]))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "optimiser: {learnin_rate: 1}",
            r"mine.yaml, line 3: unknown key 'optimiser.learnin_rate'; did you mean 'learn",
        ),
        ("temprature: 0.1", r"mine.yaml, line 3: unknown key 'temprature'; did you mean 'temperature'"),
        ("optimiser: {batch: many}", r"mine.yaml, line 3: optimiser.batch: Input should be a valid integer"),
        ("optimiser: {batch: 1}", r"mine.yaml, line 3: optimiser.batch: .*greater than or equal to 2"),
        (
            "pooling: cls",
            r"mine.yaml, line 3: pooling: Input should be 'cls_before_pooler', 'avg', 'max' or 'last'",
        ),
        ("views: {key: shuffle}", r"mine.yaml, line 3: views.key: .*'shuffle'.*'word-repetition'"),
        ("views: {key: {kind: word-repetition}}", r"mine.yaml, line 3: 'views.key.rate' is missing"),
        ("negatives: {queue: {size: 10}}", r"negatives.queue.size 10 is smaller than optimiser.batch 64"),
        ("corpus: {columns: 3}", r"negatives.hard and corpus.columns: 3 go together"),
        ("objective: {loss: triplet}", r"mine.yaml, line 3: objective.loss: .*'info-nce' or 'nt-xent'"),
        ("objective: {weight: 0}", r"mine.yaml, line 3: objective.weight: .*greater than 0"),
        (
            "objective: {loss: nt-xent, similarity: dot}",
            r"mine.yaml, line 3: objective.loss nt-xent goes with cosines and in-batch negatives alone",
        ),
        ("seed: 1\nseed: 2", r"mine.yaml, line 4: 'seed' occurs twice"),
        ("seed: [1", r"mine.yaml, line \d: not valid YAML"),
        ("seed: \x01", r"mine.yaml is not valid YAML"),
        ("objective: {temperature: 0}", r"mine.yaml, line 3: objective.temperature: .*greater than 0"),
        ("objective: {temperature: .nan}", r"mine.yaml, line 3: objective.temperature"),
    ],
)
def test_a_mistake_is_told_with_its_line(line, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"extends: simcse-bert-base\nname: mine\n{line}\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match=message):
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


MISTAKES = [
    ("predictor={output: 8}", "predictor.output is not the width of keys"),
    ("target={encodes: queue}", "target.encodes is queue, and negatives.queue is missing"),
    ("target={encodes: keys, modules: [head]}", "add encoder, of which a target has a copy"),
    ("target={encodes: keys, trained: [projector]}", "trained ['projector']: these have to be among modules"),
    ("negatives.in_batch=false", "negatives.in_batch is false, and negatives.queue is missing"),
    ("negatives.queue={size: 70, initial: 80}", "initial 80 is more than the size, 70"),
    ("negatives.queue={size: 70, uses: [[5, 80]]}", "are not ranges of 0 to 70"),
    ("noise.key.parts=[{kind: token-cutoff, rate: 0.1, count: some}]", "'share'"),
    ("noise.key.parts=[{kind: position-shuffle, padded_to: 64}]", "padded_to 64 is not corpus.max_length, 32"),
    ("noise.query.parts=[{kind: token-cutoff, rate: 0.1, padded_to: 32}]", "padded_to needs a number of tokens"),
    ("noise.masks=shared\nviews.key=word-deletion", "noise.masks shared needs the same tokens"),
    ("optimiser.adam_epsilon=none", "'after_correction' or 'before_correction'"),
    ("corpus.columns=3", "negatives.hard and corpus.columns: 3 go together"),
    ("corpus.buckets=[5, 4]", "buckets [5, 4] do not ascend"),
    ("views.key={kind: in-turn, views: [identity]}", "'identity'"),
    ("views.key={kind: synonyms}", "'views.key.rate' is missing"),
    ("views.key={kind: masked-insertion, rate: 2, model: a}", "views.key.rate: "),
    ("views.key={kind: masked-insertion, rate: 0.2}", "'views.key.model' is missing"),
]


@pytest.mark.parametrize(("overrides", "message"), MISTAKES)
def test_parts_that_do_not_fit_are_reported_with_their_key(overrides, message):
    with pytest.raises(sb.UserError, match=r"^--set ") as error:
        read_recipe("simcse-bert-base", overrides.split("\n"))
    assert message in str(error.value)


def test_changes_are_values_by_their_key():
    recipe = read_recipe("demo", ["seed=3"], {"seed": 4, "corpus.names": ("a: b",), "corpus.path": "1.txt"})
    assert (recipe.seed, recipe.corpus.names, recipe.corpus.path) == (4, ("a: b",), "1.txt")
    with pytest.raises(sb.UserError, match="--set seed=x: seed: "):
        read_recipe("demo", changes={"seed": "x"})


TASK = "tasks={t: {kind: %s, train: t.csv, columns: [a, b%s]%s}}"
CLASSES, SCALE = ", classes: [0, 1]", ", scale: [0, 5]"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([TASK % ("ranking", "", "")], r"tasks.t: .*'ranking'.*'classification', 'pair-classification', 'reg"),
        ([TASK % ("regression", "", SCALE)], r"columns \['a', 'b'\]: name two sentences and the label, 3 columns"),
        ([TASK % ("classification", ", c", CLASSES)], r"columns \['a', 'b', 'c'\]: name a sentence and the lab"),
        ([TASK % ("classification", "", CLASSES + ", held_out: 1")], "tasks.t.held_out: .*less than 1"),
        ([TASK % ("classification", "", "")], "'tasks.t.classes' is missing"),
        ([TASK % ("classification", "", ", classes: [1]")], "tasks.t.classes: .*at least 2"),
        ([TASK % ("classification", "", CLASSES + ", weight: 0")], "tasks.t.weight: .*greater than 0"),
        ([TASK % ("classification", "", CLASSES + ", rate: 0.5")], "tasks.t.rate: .*'always' or 'once'"),
        ([TASK % ("classification", "", CLASSES + ", batch: 0")], "tasks.t.batch: .*greater than or equal to 1"),
        ([TASK % ("classification", "", CLASSES + ", dropout: 1")], "tasks.t.dropout: .*less than 1"),
        ([TASK % ("classification", "", CLASSES + ", delimiter: tab")], "tasks.t.delimiter: .*at most 1 char"),
        ([TASK % ("classification", "", CLASSES + ", scale: [0, 5]")], "unknown key 'tasks.t.scale'"),
        ([TASK % ("regression", ", c", ", scale: [5, 0]")], r"scale \[5.0, 0.0\]: name the lowest score first"),
        (["tasks={t: {kind: classification}}"], "'tasks.t.train' is missing"),
        (["tasks={a b: {kind: classification, train: t.csv, columns: [a, b], classes: [0, 1]}}"], "tasks.a b"),
        (
            ["tasks={contrastive: {kind: classification, train: t.csv, columns: [a, b], classes: [0, 1]}}"],
            "choose another",
        ),
        (["phases=[{takes: [contrastive, t]}]"], "phases: phase 1 takes 't', which is none of contrastive"),
        (["phases=[{takes: []}]"], "takes: .*at least 1"),
        (["phases=[{takes: [contrastive, contrastive]}]"], "a name occurs twice"),
        (["phases=[{takes: [contrastive], epoch_of: t}]"], "epoch_of 't' is none of contrastive"),
        (["phases=[{takes: [contrastive], epochs: 0}]"], "epochs: .*greater than or equal to 1"),
        (
            [TASK % ("classification", "", CLASSES), "phases=[{takes: [contrastive]}]"],
            "phases: none takes 't'",
        ),
        (["labelled.test_pairs=some"], "labelled.test_pairs: .*'dropped', 'all-dropped' or 'kept'"),
        (
            [TASK % ("regression", ", c", SCALE), "labelled.test_pairs=kept", "selection.task=stsbenchmark:dev"],
            r"labelled.test_pairs is kept, so training reads pairs of selection.task stsbenchmark:dev",
        ),
        (["corpus.of_tasks=perhaps"], "corpus.of_tasks: .*valid boolean"),
    ],
)
def test_a_mistake_about_tasks_is_told_with_its_option_and_with_its_line(overrides, message, tmp_path):
    with pytest.raises(sb.UserError, match=rf"^--set {re.escape(overrides[-1].split('=')[0])}.*{message}"):
        read_recipe("demo", overrides)
    lines = [f"{name}: {value}" for name, _, value in (one.partition("=") for one in overrides) if "." not in name]
    if len(lines) == len(overrides):
        path = tmp_path / "mine.yaml"
        path.write_text("\n".join(["extends: demo", *lines]) + "\n", encoding="utf-8")
        with pytest.raises(sb.UserError, match=rf"mine.yaml, line {1 + len(lines)}: .*{message}"):
            read_recipe(path)


def test_tasks_on_kept_test_pairs_are_selected_on_something_else_and_say_so():
    recipe = read_recipe("multitask-bert-base-test-pairs")
    assert recipe.selection.task == "SICK-R:dev"
    (said,) = remarks_on_tests(recipe)
    assert said.startswith("Trained on test pairs: ")
    assert "paraphrase and similarity" in said
    # One sentence has no pair.
    alone = read_recipe("demo", [TASK % ("classification", "", CLASSES), "labelled.test_pairs=kept"])
    assert remarks_on_tests(alone) == []
