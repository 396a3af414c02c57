"""The target's keys, its schedule, its queue and the steps on embeddings: against plain references."""

import copy
import math

import numpy as np
import pytest
import torch
from small_trainings import plain_vectors

from stsbench.training.base import decay_at
from stsbench.training.noise import (
    ElementCutoff,
    FeatureCutoff,
    GaussianReplacement,
    PositionShuffle,
    TokenCutoff,
)
from stsbench.training.parts import CosineDecay
from stsbench.training.recipe import read_recipe, traceable_sentence

MOCOSE = (
    "dropout=0",
    "head={kind: dense, start: pooler}",
    "projector={layers: 1, dropout: 0}",
    "predictor={layers: 2, dropout: 0, ends: tanh}",
    "target={encodes: keys, embeddings: shared, decay: {kind: cosine, start: 0.75, end: 0.95}}",
    "negatives.queue={size: 20, initial: 5}",
)


def naive_loss(query, key, queue, *, in_batch, dot=False):
    """Equation 3 sum by sum."""

    def sim(u, v):
        return u @ v if dot else u @ v / (u.norm() * v.norm())

    losses = []
    for i in range(len(query)):
        others = [row for j, row in enumerate(key) if in_batch and j != i] + list(queue)
        own = torch.exp(sim(query[i], key[i]) / 0.05)
        losses.append(-torch.log(own / (own + sum(torch.exp(sim(query[i], row) / 0.05) for row in others))))
    return torch.stack(losses).mean()


def gradients(trainer, batch):
    loss = trainer.terms[0](batch, lambda value: value)
    found = {n: p.grad.clone() for n, p in trainer.model.named_parameters() if p.grad is not None}
    trainer.model.zero_grad()
    return float(loss), found


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("in_batch", [False, True])
def test_mocoses_loss_and_gradient_equal_the_equations(in_batch, gradient, assembled):
    trainer = assembled(*MOCOSE, f"negatives.in_batch={in_batch}", f"target.gradient={gradient}")
    for model in (trainer.model, trainer.target.model):
        model.double()
        model._pooler = lambda states, mask: (states[-1] * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
    trainer.queue.vectors = trainer.queue.vectors.double()
    queue, batch = trainer.queue.columns(), trainer.reader(np.arange(8), "now")
    loss, found = gradients(trainer, batch)

    model, target = trainer.model, trainer.target.model
    query = plain_vectors(model, lambda x: model.predictor(model.projector(model.head(x))), batch.query)
    key = plain_vectors(target, lambda x: target.projector(target.head(x)), batch.key)
    expected = naive_loss(query, key if gradient else key.detach(), queue, in_batch=in_batch)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-6)
    wanted = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, atol=1e-9, rtol=1e-6)
    # What follows is never trained; what it shares is, and through the keys only if the recipe says so.
    assert all(p.grad is None for name, p in target.named_parameters() if "embeddings" not in name)
    assert target.transformer.embeddings is model.transformer.embeddings


def test_queue_and_target_after_five_steps_are_those_of_lists(assembled):
    trainer = assembled(*MOCOSE)
    start, steps = [tuple(row) for row in trainer.queue.columns().tolist()], trainer.timetable.steps
    np.testing.assert_allclose(trainer.queue.columns().norm(dim=1), 1, rtol=1e-6)
    names = [n for n, _ in trainer.target.model.named_parameters() if "embeddings" not in n]
    slow = {n: p.detach().double().clone() for n, p in trainer.model.named_parameters() if n in names}
    rows = start
    for step in range(min(5, steps)):
        batch = trainer.reader(trainer.schedule.batches(step)[0], str(step), "0")
        with torch.no_grad():
            keys = plain_vectors(trainer.target.model, trainer.target.model.key_head, batch.key)
        rows = [*map(tuple, keys.tolist()), *rows][:20]
        trainer.step(step)
        decay = decay_at(trainer.target.part.decay, step, steps)
        fast = dict(trainer.model.named_parameters())
        slow = {n: decay * value + (1 - decay) * fast[n].detach().double() for n, value in slow.items()}
        np.testing.assert_allclose(trainer.queue.columns().numpy(), np.array(rows), atol=2e-5)
        now = dict(trainer.target.model.named_parameters())
        for name, value in slow.items():
            np.testing.assert_allclose(now[name], value, atol=1e-5)


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ({"start": 0.75, "end": 0.95}, lambda k: 0.95 - 0.2 * (math.cos(math.pi * k / 9) + 1) / 2),
        (
            {"start": 0.75, "end": 1.0, "steps": 3},
            lambda k: 1 - 0.25 * (math.cos(math.pi * min(k, 3) / 3) + 1) / 2,
        ),
        (
            {"start": 0.75, "end": 1.0, "steps": 3, "after": "returns"},
            lambda k: 1 - 0.25 * (math.cos(math.pi * k / 3) + 1) / 2,
        ),
    ],
)
def test_the_decay_at_ten_steps_is_the_cosine(part, values):
    decay = CosineDecay(kind="cosine", **part)
    found = [decay_at(decay, step, 9) for step in range(10)]
    assert found == pytest.approx([values(step) for step in range(10)])
    assert decay_at(0.995, 7, 9) == 0.995


def test_a_trained_copy_gets_the_gradient_of_the_equations_and_is_stepped_before_it_follows(assembled):
    trainer = assembled(
        *MOCOSE[:4],
        "target={encodes: keys, gradient: true, trained: [projector], decay: 0.9}",
        "negatives.queue={size: 20, initial: 5}",
        "optimiser.clip=null",
    )
    model, target = trainer.model, trainer.target.model
    batch = trainer.reader(trainer.schedule.batches(0)[0], "0", "0")
    trainer.terms[0](batch, lambda value: value)
    found = {name: weight.grad.clone() for name, weight in target.named_parameters() if weight.grad is not None}
    assert set(found) == {name for name, _ in target.named_parameters() if name.startswith("projector.")}
    trainer.model.zero_grad()
    target.zero_grad()
    trainer.queue.vectors = trainer.queue._initial()
    query = plain_vectors(model, model.query_head, batch.query)
    key = plain_vectors(target, target.key_head, batch.key)
    naive_loss(query, key, trainer.queue.columns(), in_batch=True).backward()
    for name, value in found.items():
        torch.testing.assert_close(dict(target.named_parameters())[name].grad, value, atol=1e-5, rtol=1e-3)
    target.zero_grad()
    model.zero_grad()
    # Adam's first step is the learning rate times the sign of the gradient; then it follows.
    name = "projector.0.weight"
    before, fast = target.projector[0].weight.detach().clone(), dict(model.named_parameters())
    rate = trainer.step(0)[2]
    stepped = before - rate * found[name].sign()
    expected = 0.9 * stepped + 0.1 * fast[name].detach()
    clear = found[name].abs() > 1e-6
    torch.testing.assert_close(target.projector[0].weight.detach()[clear], expected[clear], atol=1e-6, rtol=1e-3)


def test_slices_of_the_queue_are_counted_from_the_newest(assembled):
    trainer = assembled("negatives.queue={size: 20, uses: [[0, 2], [5, 7]]}")
    last = assembled("negatives.queue={size: 20, uses: [[0, 2], [5, 7]], keeps: last_rows}")
    rows = torch.arange(20.0).unsqueeze(1).expand(20, 16)
    trainer.queue.vectors, last.queue.vectors = rows, rows.flip(0)
    for queue in (trainer.queue, last.queue):
        assert queue.columns()[:, 0].tolist() == [0, 1, 5, 6]


def test_the_step_follows_the_sign_of_the_gradient_of_the_same_sentences(assembled):
    overrides = ("dropout=0", "noise.adversarial={step: 0.1, gradient: own}", "optimiser.chunk=3")
    trainer, clean = assembled(*overrides), assembled("dropout=0")
    batch = trainer.reader(np.arange(8), "now")
    loss, _ = gradients(trainer, batch)

    # The reference: a table of embeddings a sentence, shared by both sides.
    model = clean.model

    def vectors(tables):
        rows = []
        for table in tables:
            states = model.transformer(inputs_embeds=table.unsqueeze(0)).last_hidden_state[0]
            rows.append(states.mean(0))
        return torch.stack(rows)

    tables = [model.word_embeddings(torch.tensor(row)).detach().requires_grad_() for row in batch.query]
    both = vectors(tables)
    before = naive_loss(both, vectors(tables), [], in_batch=True)
    before.backward()
    moved = [table.detach() + 0.1 * table.grad.sign() for table in tables]
    expected = naive_loss(vectors(moved), vectors(moved), [], in_batch=True)
    assert loss == pytest.approx(expected.item(), rel=1e-4)
    assert loss != pytest.approx(before.item(), rel=1e-5)


def test_the_previous_gradient_is_used_a_step_later_and_is_part_of_the_state(assembled):
    part = "noise.adversarial={step: 0.01, gradient: previous}"
    trainer, plain_one = assembled("dropout=0", part), assembled("dropout=0")
    first, second = (trainer.reader(np.arange(at, at + 8), str(at)) for at in (0, 8))
    assert gradients(trainer, first)[0] == pytest.approx(gradients(plain_one, first)[0])
    state = copy.deepcopy(trainer.state_dict())
    after = gradients(trainer, second)[0]
    assert after != pytest.approx(gradients(plain_one, second)[0], rel=1e-6)
    again = assembled("dropout=0", part)
    again.load_state_dict(state)
    assert gradients(again, second)[0] == after


def test_the_same_masks_on_both_sides_make_both_sides_alike(assembled):
    shared, own = assembled("dropout=0.3", "noise.masks=shared"), assembled("dropout=0.3")
    for trainer, alike in ((shared, True), (own, False)):
        term, batch = trainer.terms[0], trainer.reader(np.arange(8), "now")
        chunks = [term.forward.chunks(branch.sequences(batch)) for branch in term.branches]
        vectors = torch.cat(term._encode_all(chunks, batch))
        assert torch.equal(vectors[:8], vectors[8:]) == alike


def test_dropout_of_one_side_is_that_sides_alone(assembled):
    trainer = assembled("dropout=0.3", "noise.query.dropout=0")
    term, batch = trainer.terms[0], trainer.reader(np.arange(8), "now")
    query, key = term.branches
    found = term._encode(query, term.forward.chunks(batch.query), batch)
    trainer.model.eval()
    with torch.no_grad():
        torch.testing.assert_close(found, plain_vectors(trainer.model, trainer.model.key_head, batch.query))
    trainer.model.train()
    noisy = term._encode(key, term.forward.chunks(batch.key), batch)
    assert (noisy - found).abs().max() > 1e-3
    assert all(m.p == 0.3 for m in trainer.model.modules() if isinstance(m, torch.nn.Dropout))


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
    single = ElementCutoff(kind="element-cutoff", rate=0.1, count=count).embeddings(ones, mask) == 0
    assert set(single.flatten(1).sum(1).tolist()) == {50, 15}
    assert not single[500:, 3:].any()


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


def test_the_maximum_traceable_distance_follows_from_the_recipe():
    values = ["negatives.queue={size: 512}", "target={decay: 0.85}"]
    constant = read_recipe("simcse-bert-base", values)
    # The best for base by the paper's own figure (section 5.7).
    assert "distance 14.67 steps" in traceable_sentence(constant)
    assert "distance 12.00 to 28.00 steps" in traceable_sentence(read_recipe("mocose-bert-base"))  # 4 + 8, 20 + 8
    assert " to inf steps" in traceable_sentence(read_recipe("mocose-bert-base-released"))
    assert traceable_sentence(read_recipe("simcse-bert-base")) is None
