"""The target's keys, its schedule, its queue and the steps on embeddings: against plain references."""

import math

import numpy as np
import pytest
import torch
from small_trainings import plain_vectors

from stsbench.training.base import decay_at
from stsbench.training.noise import (
    FeatureCutoff,
    GaussianReplacement,
    PositionShuffle,
    TokenCutoff,
)
from stsbench.training.parts import CosineDecay


@pytest.mark.parametrize(
    ("overrides", "side", "columns"),
    [
        (
            (
                "head=dense-tanh",
                "views.key={kind: subword-repetition, rate: 0.5}",
                "negatives.queue.size=20",
                "target.decay=0.9",
                "optimiser.epochs=2",
            ),
            "query",
            # The loss uses the rows that it has; the batch of two at an epoch's end pushes two out.
            [0, 8, 16, 20, 20, 20, 20, 20],
        ),
        (
            (
                "head={kind: dense, start: pooler}",
                "projector={layers: 1, dropout: 0}",
                "predictor={layers: 2, dropout: 0, ends: tanh}",
                "target={encodes: keys, embeddings: shared, decay: {kind: cosine, start: 0.75, end: 0.95}}",
                "negatives.queue={size: 20, initial: 5}",
            ),
            "key",
            [5, 13, 20, 20, 20],
        ),
    ],
    ids=["esimcse", "mocose"],
)
def test_queue_and_target_after_each_step_are_those_of_lists(overrides, side, columns, assembled):
    trainer, counts = assembled("dropout=0", *overrides), []
    target, steps, rows = trainer.target.model, trainer.timetable.steps, trainer.queue.columns().tolist()
    np.testing.assert_allclose(trainer.queue.columns().norm(dim=1), 1, rtol=1e-6)
    names = [n for n, _ in target.named_parameters() if side == "query" or "embeddings" not in n]
    slow = {n: p.detach().double().clone() for n, p in trainer.model.named_parameters() if n in names}
    assert slow.keys() == set(names)
    for step in range(len(columns)):
        counts.append(len(trainer.queue.columns()))
        batch = trainer.reader(trainer.schedule.batches(step)[0], str(step), "0")
        with torch.no_grad():
            vectors = plain_vectors(target, target.key_head, getattr(batch, side))
        rows = [*vectors.tolist(), *rows][:20]
        trainer.step(step)
        decay = decay_at(trainer.target.part.decay, step, steps)
        fast = dict(trainer.model.named_parameters())
        slow = {n: decay * value + (1 - decay) * fast[n].detach().double() for n, value in slow.items()}
        np.testing.assert_allclose(trainer.queue.columns().numpy(), np.array(rows), atol=2e-5)
        for name, weight in target.named_parameters():
            if name in names:
                np.testing.assert_allclose(weight.detach(), slow[name], atol=1e-5)
    assert counts == columns


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ({"end": 0.95}, lambda k: 0.95 - 0.2 * (math.cos(math.pi * k / 9) + 1) / 2),
        ({"end": 1.0, "steps": 3}, lambda k: 1 - 0.25 * (math.cos(math.pi * min(k, 3) / 3) + 1) / 2),
        ({"end": 1.0, "steps": 3, "after": "returns"}, lambda k: 1 - 0.25 * (math.cos(math.pi * k / 3) + 1) / 2),
    ],
)
def test_the_decay_at_ten_steps_is_the_cosine(part, values):
    decay = CosineDecay(kind="cosine", start=0.75, **part)
    found = [decay_at(decay, step, 9) for step in range(10)]
    assert found == pytest.approx([values(step) for step in range(10)])
    assert decay_at(0.995, 7, 9) == 0.995


def test_slices_of_the_queue_are_counted_from_the_newest(assembled):
    trainer = assembled("negatives.queue={size: 20, uses: [[0, 2], [5, 7]]}")
    last = assembled("negatives.queue={size: 20, uses: [[0, 2], [5, 7]], keeps: last_rows}")
    rows = torch.arange(20.0).unsqueeze(1).expand(20, 16)
    trainer.queue.vectors, last.queue.vectors = rows, rows.flip(0)
    for queue in (trainer.queue, last.queue):
        assert queue.columns()[:, 0].tolist() == [0, 1, 5, 6]


def test_the_same_masks_on_both_sides_make_both_sides_alike(assembled):
    shared, own = assembled("dropout=0.3", "noise.masks=shared"), assembled("dropout=0.3")
    for trainer, alike in ((shared, True), (own, False)):
        term, batch = trainer.terms[0], trainer.reader(np.arange(8), "now")
        chunks = [term.forward.chunks(branch.sequences(batch)) for branch in term.branches]
        vectors = torch.cat(term._encode_all(chunks, batch))
        assert torch.equal(vectors[:8], vectors[8:]) == alike


def test_noise_draws_what_it_says():
    torch.manual_seed(0)
    embedded, mask = torch.ones(400, 6, 50), torch.ones(400, 6, dtype=torch.long)
    mask[:, 4:] = 0
    tokens = TokenCutoff(kind="token-cutoff", rate=0.25).embeddings(embedded, mask)
    assert ((tokens == 0).all(-1) | (tokens == 1).all(-1)).all()
    assert float((tokens == 0).float().mean()) == pytest.approx(0.25, abs=0.03)
    features = FeatureCutoff(kind="feature-cutoff", rate=0.25).embeddings(embedded, mask)
    assert ((features == 0).all(1) | (features == 1).all(1)).all()
    assert float((features == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    replaced = GaussianReplacement(kind="gaussian-replacement", rate=0.1, std=0.2).vectors(
        torch.full((400, 500), 9.0)
    )
    changed = replaced != 9
    assert float(changed.float().mean()) == pytest.approx(0.1, abs=0.005)
    assert (float(replaced[changed].mean()), float(replaced[changed].std())) == pytest.approx((0, 0.2), abs=0.01)
    positions = torch.arange(6).expand(400, 6)
    shuffled = PositionShuffle(kind="position-shuffle").positions(positions, mask)
    assert (shuffled[:, :4].sort(1).values == positions[:, :4]).all()
    assert (shuffled[:, 4:].sort(1).values == positions[:, 4:]).all()
    assert float((shuffled[:, 0] == 0).float().mean()) == pytest.approx(0.25, abs=0.07)


@pytest.mark.parametrize(("count", "tokens", "features"), [("share", 0, 12), ("at_least_one", 1, 12)])
def test_a_share_is_cut_off_to_the_number_and_each_place_as_often(count, tokens, features):
    torch.manual_seed(0)
    mask = (torch.arange(10) < torch.tensor([[10]] * 500 + [[3]] * 500)).long()
    ones = torch.ones(1000, 10, 50)
    gone = TokenCutoff(kind="token-cutoff", rate=0.3, count=count).embeddings(ones, mask)[:, :, 0] == 0
    assert set(gone[:500].sum(1).tolist()) == {3}
    assert set(gone[500:].sum(1).tolist()) == {tokens}  # int(0.3 * 3) is 0
    assert not gone[500:, 3:].any()
    assert gone[:500].float().mean(0).numpy() == pytest.approx(np.full(10, 0.3), abs=0.07)
    cut = FeatureCutoff(kind="feature-cutoff", rate=0.25, count=count).embeddings(ones, mask) == 0
    assert (cut.all(1) == cut.any(1)).all()
    assert set(cut[:, 0].sum(1).tolist()) == {features}


def test_noise_on_the_embedding_layer_reaches_its_output_and_leaves_no_hook_behind(assembled):
    part = "{kind: feature-cutoff, rate: 0.3, count: share, place: layer}"
    trainer = assembled("dropout=0", f"noise.key.parts=[{part}]", "optimiser.chunk=3")
    term, batch = trainer.terms[0], trainer.reader(np.arange(8), "now")
    seen = []
    layer = trainer.model.transformer.encoder.layer[0].register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0].detach())
    )
    query, key = (
        term._encode(branch, term.forward.chunks(branch.sequences(batch)), batch) for branch in term.branches
    )
    layer.remove()
    assert (query - key).abs().max() > 1e-3
    half = len(seen) // 2
    assert not any((states == 0).all(1).any() for states in seen[:half])
    for states in seen[half:]:
        assert set((states == 0).all(1).sum(1).tolist()) == {4}  # int(0.3 * 16), after the normalisation
    assert not trainer.model.transformer.embeddings._forward_hooks
    (cutoff,), ones = term.branches[1].noise, torch.ones(2, 3, 16)
    assert torch.equal(cutoff.embeddings(ones, ones[:, :, 0]), ones)


@pytest.mark.parametrize(
    ("more", "has_dropout"),
    [
        ((), False),
        (("target={modules: [encoder]}", "projector={dropout: 0.5}"), False),  # though the shared projector has
        (("target.dropout=true",), True),
    ],
)
def test_the_momentum_encoder_has_no_gradient_and_dropout_only_if_the_recipe_says(more, has_dropout, assembled):
    trainer = assembled("dropout=0.5", "negatives.queue.size=20", *more)
    target, batch = trainer.target.model, trainer.reader(np.arange(8), "now")
    trainer.queue.push(batch, torch.zeros(0))
    columns = trainer.queue.columns()
    assert not columns.requires_grad
    assert not any(weight.requires_grad for weight in target.transformer.parameters())
    with torch.no_grad():
        plain = plain_vectors(target.eval(), target.key_head, batch.query)
    assert ((columns - plain).abs().max() > 1e-3) == has_dropout


def test_the_released_order_moves_before_the_loss_uses_the_online_head_and_empties_each_epoch(assembled):
    trainer = assembled(
        "negatives.queue.size=20",
        "target={decay: 0.9, update: before_loss, modules: [encoder], start: random}",
        "negatives.queue.emptied=each_epoch",
        "head=dense-tanh",
        "optimiser.epochs=2",
    )
    # It starts from random weights, not from the base's.
    online = dict(trainer.model.transformer.named_parameters())
    start = {n: p.clone() for n, p in trainer.target.model.transformer.named_parameters()}
    name = "encoder.layer.0.attention.self.query.weight"
    assert start[name].std() < 0.05 < online[name].std()
    before = online[name].detach().clone()
    trainer.step(0)
    moved = dict(trainer.target.model.transformer.named_parameters())[name]
    torch.testing.assert_close(moved, 0.9 * start[name] + 0.1 * before)
    # Its head is the online one, and is trained.
    assert trainer.target.model.head is trainer.model.head
    assert all(parameter.requires_grad for parameter in trainer.model.head.parameters())
    for step in range(1, 6):
        trainer.step(step)
    assert len(trainer.queue.columns()) == 20
    trainer.step(6)
    assert len(trainer.queue.columns()) == 8


@pytest.mark.parametrize(("keeps", "rows"), [("first_rows", [0, 1, 2, 3]), ("last_rows", [4, 5, 6, 7])])
def test_of_the_oldest_batch_the_rows_that_the_recipe_says_stay(keeps, rows, assembled):
    trainer = assembled(f"negatives.queue={{size: 20, keeps: {keeps}}}")
    batches = [trainer.reader(np.arange(start, start + 8), str(start)) for start in (0, 8, 16)]
    pushed = []
    for batch in batches:
        trainer.queue.vectors = trainer.queue._initial()
        trainer.queue.push(batch, torch.zeros(0))
        pushed.append(trainer.queue.columns().clone())
    trainer.queue.vectors = trainer.queue._initial()
    for batch in batches:
        trainer.queue.push(batch, torch.zeros(0))
    expected = torch.cat([pushed[0][rows], pushed[1], pushed[2]])
    found = trainer.queue.columns()
    assert len(found) == 20
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, expected.tolist()))
