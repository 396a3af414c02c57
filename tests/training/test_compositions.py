"""Parts compose: any of them together train, and go on from a saved state to the same bits."""

import copy

import numpy as np
import pytest
import torch

CHOICES = (
    ["dropout=0.1", "dropout=0.2"],
    [
        "views.key={kind: subword-repetition, rate: 0.5}",
        "views.key={kind: crop, rate: 0.3}",
        "views.query={kind: word-deletion}",
        "views.key={kind: stop-words, rate: 0.3}",
        "views.query={kind: typos, rate: 0.2}",
        "views.key={kind: synonyms, rate: 0.5, lexicon: 'LEXICON'}",
        "views.key={kind: masked-insertion, rate: 0.5, model: 'BASE'}",
        "views.query={kind: masked-replacement, rate: 0.3, model: 'BASE'}",
        "views.key={kind: in-turn, views: [{kind: crop, rate: 0.2}, {kind: word-repetition, rate: 0.5}]}",
    ],
    [
        "noise.key.parts=[position-shuffle]",
        "noise.query.parts=[{kind: token-cutoff, rate: 0.1}, {kind: feature-cutoff, rate: 0.1}]",
        "noise.query.dropout=0",
        "noise.query.parts=[{kind: element-cutoff, rate: 0.2, count: share, place: layer}]",
        "noise.key.parts=[gaussian-replacement]",
    ],
    [
        "noise.adversarial={step: 0.01, gradient: own}",
        "noise.adversarial={step: 0.01, gradient: previous}",
        "optimiser.gradient_cache=true",
        "optimiser.accumulate=2",
    ],
    ["head=dense-tanh", "head={kind: dense, start: pooler}", "head=none"],
    ["projector={layers: 2, width: 12, dropout: 0.2}", "predictor={layers: 2, ends: tanh}"],
    [
        "target={encodes: keys, embeddings: shared, dropout: true}",
        "target={encodes: keys, gradient: true, decay: {kind: cosine, start: 0.5, end: 0.9, after: returns}}",
        "target={modules: [encoder], update: before_loss, start: random}",
        "target={encodes: keys, modules: [encoder, head], decay: 0.5}",
        "target={encodes: keys, gradient: true, trained: [projector], decay: 0.5}",
    ],
    [
        "negatives.queue={size: 20, initial: 6, uses: [[0, 4], [6, 20]]}",
        "negatives.queue={size: 12, emptied: each_epoch, keeps: last_rows}",
    ],
    ["negatives.in_batch=false", "objective.similarity=dot", "corpus.buckets=[8, 11]", "objective.mlm.weight=0.1"],
)


PHASES = (
    "phases=[]",
    "phases=[{takes: [contrastive], epochs: 1, epoch_of: contrastive}, {takes: [mood, same, score]}]",
    "phases=[{takes: [same, contrastive], epoch_of: same}, {takes: [score, contrastive, mood]}]",
)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_composition_resumes_to_the_bit(seed, assembled, tasks, benchmark_folder, base, tmp_path):
    rng = np.random.default_rng(seed)
    (tmp_path / "lexicon.tsv").write_text("man\tmale|chap\na\tone|some\nis\tseems\n", encoding="utf-8")
    places = {"LEXICON": str(tmp_path / "lexicon.tsv"), "BASE": str(base)}
    parts = ["optimiser.epochs=2", *(str(rng.choice(choices)) for choices in CHOICES)]
    for name, place in places.items():
        parts = [part.replace(name, place) for part in parts]
    # Two parts that do not go together by their definition.
    if "optimiser.gradient_cache=true" in parts:
        parts = [part for part in parts if "adversarial" not in part]
    # One of the six is the contrastive term alone.
    parts += [] if seed == len(PHASES) else [*tasks.splitlines(), PHASES[seed % len(PHASES)]]
    one, other = (assembled(*parts, data_dirs=[benchmark_folder]) for _ in range(2))
    # Where there are phases, two steps stand before the first one's end and two behind it.
    start = one.timetable.ends[0] - 2 if len(one.timetable.ends) > 1 else 0
    for step in range(start, start + 2):
        one.step(step)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for step in range(start + 2, start + 4):
        losses = one.step(step)[0], other.step(step)[0]
        assert torch.isfinite(losses[0])
        assert torch.equal(*losses)
    modules = one.state_dict()["modules"]
    assert seed == len(PHASES) or {"tasks.mood", "tasks.same", "tasks.score"} <= modules.keys()
    for module, weights in modules.items():
        for name, value in weights.items():
            assert torch.equal(value, other.state_dict()["modules"][module][name]), (module, name)
