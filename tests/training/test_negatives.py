"""Queue and momentum encoder after some steps equal a reference that keeps lists."""

import copy

import numpy as np
import pytest
import torch

REPEATED = "views.key={kind: subword-repetition, rate: 0.5}"


class ListReference:
    """The queue as a list of rows, the momentum encoder as a list of arrays, moved by hand."""

    def __init__(self, trainer, size, decay):
        self.size, self.decay = size, decay
        self.slow = [p.detach().double().numpy().copy() for p in trainer.model.parameters()]
        self.rows = []

    def follow(self, model):
        fast = [parameter.detach().double().numpy() for parameter in model.parameters()]
        self.slow = [self.decay * m + (1 - self.decay) * f for m, f in zip(self.slow, fast, strict=True)]

    def encode(self, model, sequences):
        other = copy.deepcopy(model).double().eval()
        with torch.no_grad():
            for parameter, slow in zip(other.parameters(), self.slow, strict=True):
                parameter.copy_(torch.from_numpy(slow))
            for sequence in sequences:
                states = other.transformer(input_ids=torch.tensor(sequence).unsqueeze(0)).last_hidden_state[0]
                yield other.head(states.mean(0)).numpy()

    def push(self, rows):
        self.rows = [*rows, *self.rows][: self.size]


def test_after_each_step_queue_and_momentum_are_those_of_the_list_reference(assembled):
    trainer = assembled(
        REPEATED, "negatives.queue.size=20", "target.decay=0.9", "head=dense-tanh", "optimiser.epochs=2"
    )
    reference, columns = ListReference(trainer, 20, 0.9), []
    for step in range(8):
        columns.append(len(trainer.queue.columns()))
        batch = trainer.reader(trainer.schedule.batches(step)[0], str(step), "0")
        reference.push(list(reference.encode(trainer.model, batch.query)))
        trainer.step(step)
        reference.follow(trainer.model)
        np.testing.assert_allclose(trainer.queue.columns().numpy(), np.array(reference.rows), atol=2e-5)
        for parameter, slow in zip(trainer.target.model.parameters(), reference.slow, strict=True):
            np.testing.assert_allclose(parameter.numpy(), slow, atol=1e-5)
    # While it fills the loss uses what there is; the batch of two at an epoch's end pushes two out.
    assert columns == [0, 8, 16, 20, 20, 20, 20, 20]


def test_the_momentum_encoder_has_no_dropout_and_no_gradient(assembled):
    trainer = assembled("dropout=0.5", "negatives.queue.size=20")
    batch = trainer.reader(np.arange(8), "now")
    trainer.queue.push(batch, torch.zeros(0))
    first = trainer.queue.columns().clone()
    trainer.queue.push(batch, torch.zeros(0))
    assert torch.equal(trainer.queue.columns()[:8], first)
    assert not any(p.requires_grad for p in trainer.target.model.parameters())
    assert not trainer.target.model.training
    assert not trainer.queue.columns().requires_grad


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
