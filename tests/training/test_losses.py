"""Losses and gradients, of functions and of whole steps, equal the equations sum by sum in float64."""

import copy

import numpy as np
import pytest
import torch
from small_trainings import plain_vectors, tiny

from stsbench.training.guesses import IGNORED, mask_tokens
from stsbench.training.model import Forward, SentenceModel
from stsbench.training.objectives import info_nce, nt_xent

MOCOSE = (
    "head={kind: dense, start: pooler}",
    "projector={layers: 1, dropout: 0}",
    "predictor={layers: 2, dropout: 0, ends: tanh}",
    "target={encodes: keys, embeddings: shared, decay: {kind: cosine, start: 0.75, end: 0.95}}",
    "negatives.queue={size: 20, initial: 5}",
)


def naive_info_nce(query, key, *, temperature, hard=(), hard_weight=1, queue=(), in_batch=True, similarity=""):
    """The papers' loss (SimCSE, equations 1 and 5; ESimCSE, 6; MoCoSE, 3), sum by sum."""

    def exp(u, v):
        scale = 1 if similarity == "dot" else u.norm() * v.norm()
        return torch.exp(u @ v / scale / temperature)

    losses = []
    for i, row in enumerate(query):
        below = sum(exp(row, other) for j, other in enumerate(key) if in_batch or j == i)
        for j, other in enumerate(hard):
            below = below + (hard_weight if i == j else 1) * exp(row, other)
        below = below + sum(exp(row, other) for other in queue)
        losses.append(-torch.log(exp(row, key[i]) / below))
    return torch.stack(losses).mean()


def naive_nt_xent(query, key, *, temperature):
    """SimCLR's algorithm 1, pair by pair."""
    rows, losses = [*query, *key], []
    for i, row in enumerate(rows):
        exps = [torch.exp(row @ other / (row.norm() * other.norm()) / temperature) for other in rows]
        below = sum(value for k, value in enumerate(exps) if k != i)
        losses.append(-torch.log(exps[(i + len(query)) % len(rows)] / below))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("temperature", [0.05, 0.5, 1.0])
@pytest.mark.parametrize(
    "case",
    [
        {},
        {"hard": True},
        {"hard": True, "hard_weight": 2.5},
        {"queue": 7},
        {"hard": True, "hard_weight": 0.5, "queue": 3},
        {"queue": 7, "in_batch": False},
        {"queue": 7, "similarity": "dot"},
        {"loss": "nt-xent"},
    ],
    ids=str,
)
def test_losses_and_gradients_equal_the_equations_and_the_queue_has_no_gradient(case, temperature):
    rng = np.random.default_rng(0)
    loss, naive, options = info_nce, naive_info_nce, {"temperature": temperature} | case
    if options.pop("loss", None):
        loss, naive = nt_xent, naive_nt_xent
    vectors = {"query": 6, "key": 6} | ({"hard": 6} if options.pop("hard", None) else {})
    vectors |= {"queue": options.pop("queue")} if "queue" in options else {}
    values = {name: torch.tensor(rng.normal(size=(rows, 5))) for name, rows in vectors.items()}
    given, plain = ({name: value.clone().requires_grad_() for name, value in values.items()} for _ in range(2))
    result, expected = loss(**given, **options), naive(**plain, **options)
    assert result.item() == pytest.approx(expected.item(), abs=1e-9)
    single = loss(**{name: value.float() for name, value in values.items()}, **options)
    assert single.item() == pytest.approx(expected.item(), rel=1e-6, abs=1e-6)
    result.backward()
    expected.backward()
    for name, vector in given.items():
        if name == "queue":
            assert vector.grad is None
        else:
            torch.testing.assert_close(vector.grad, plain[name].grad, atol=1e-9, rtol=1e-9)


@pytest.fixture
def triplets(tmp_path):
    from stsbench.data.corpus import load_corpus

    sentences = load_corpus("sample")
    path = tmp_path / "triplets.tsv"
    path.write_text("".join("\t".join(sentences[i : i + 3]) + "\n" for i in range(0, 60, 3)), encoding="utf-8")
    return path


def in_double(trainer):
    """Turn a trainer to float64: single precision loses half its digits where vectors are nearly alike."""
    models = [trainer.model, getattr(trainer.target, "model", None)]
    for model in filter(None, models):
        model.double()
        model._pooler = lambda states, mask: (states[-1] * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
    if "mlm" in trainer.modules:
        trainer.modules["mlm"].double()
    if trainer.queue is not None:
        trainer.queue.vectors = trainer.queue.vectors.double()


def gradients(trainer, batch):
    """Return the loss of a batch, summed over terms, and the gradient of each weight."""
    losses = [term(batch, lambda loss: loss) for term in trainer.terms]
    parameters = list(trainer.model.named_parameters())
    computed = {name: weight.grad.clone() for name, weight in parameters if weight.grad is not None}
    trainer.model.zero_grad()
    return float(torch.stack(losses).sum()), computed


STEPS = {
    "simcse": ("head=dense-tanh",),
    "esimcse": ("head=dense-tanh", "views.key={kind: subword-repetition, rate: 0.5}", "negatives.queue.size=20"),
    "supervised": ("head=dense-tanh", "corpus.columns=3", "negatives.hard.weight=2"),
    "consert": ("objective={loss: nt-xent, temperature: 0.1, weight: 0.3}", "views.key={kind: crop, rate: 0.3}"),
    "mocose": (*MOCOSE, "negatives.in_batch=false"),
    "mocose, in batch": MOCOSE,
    "mocose, gradient": (*MOCOSE, "negatives.in_batch=false", "target.gradient=true"),
    "mocose, gradient, in batch": (*MOCOSE, "target.gradient=true"),
    "mocose, dot": (*MOCOSE, "negatives.in_batch=false", "objective={similarity: dot, temperature: 1}"),
}


@pytest.mark.parametrize(
    ("kind", "more"),
    [(kind, ()) for kind in STEPS]
    + [(kind, ("optimiser.gradient_cache=true",)) for kind in ("simcse", "esimcse", "supervised", "consert")],
    ids=str,
)
def test_a_steps_loss_and_gradients_equal_the_equations_one_sentence_at_a_time(
    kind, more, assembled, triplets, corpus
):
    file = triplets if kind == "supervised" else corpus
    trainer = assembled("dropout=0", "optimiser.chunk=3", *STEPS[kind], *more, file=file)
    in_double(trainer)
    if kind == "esimcse":
        trainer.queue.push(trainer.reader(np.arange(20, 31), "before"), torch.zeros(0))
    batch = trainer.reader(np.arange(8), "now")
    queue = () if trainer.queue is None else trainer.queue.columns()  # the batch enters it after the loss
    loss, computed = gradients(trainer, batch)

    model, keys = trainer.model, trainer.model
    if kind.startswith("mocose"):
        keys = trainer.target.model
        query = plain_vectors(model, lambda x: model.predictor(model.projector(model.head(x))), batch.query)
        key = plain_vectors(keys, lambda x: keys.projector(keys.head(x)), batch.key)
        key = key if "gradient" in kind else key.detach()
    else:
        query, key = (plain_vectors(model, model.head, side) for side in (batch.query, batch.key))
    if kind == "consert":
        expected = 0.3 * naive_nt_xent(query, key, temperature=0.1)
    else:
        expected = naive_info_nce(
            query,
            key,
            temperature=1.0 if "dot" in kind else 0.05,
            hard=plain_vectors(model, model.head, batch.hard) if batch.hard else (),
            hard_weight=2,
            queue=queue,
            in_batch=kind not in {"mocose", "mocose, gradient", "mocose, dot"},
            similarity="dot" if "dot" in kind else "cosine",
        )
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-6, abs=1e-9)
    wanted = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    assert set(computed) == set(wanted)
    for name, gradient in wanted.items():
        torch.testing.assert_close(computed[name], gradient, atol=1e-9, rtol=1e-6)
    if keys is not model:  # the target is not trained; what it shares is
        assert all(p.grad is None for name, p in keys.named_parameters() if "embeddings" not in name)
        assert keys.transformer.embeddings is model.transformer.embeddings


def test_gradient_caching_changes_nothing_with_dropout_on(assembled):
    plain = assembled("optimiser.chunk=3")
    cached = assembled("optimiser.chunk=3", "optimiser.gradient_cache=true")
    batch = plain.reader(np.arange(8), "now")
    loss, found = gradients(plain, batch)
    again, cached_found = gradients(cached, batch)
    assert again == pytest.approx(loss, rel=1e-6)
    for name, gradient in found.items():
        torch.testing.assert_close(cached_found[name], gradient, atol=1e-6, rtol=1e-4)


def test_the_masked_language_loss_equals_the_naive_one(assembled):
    trainer = assembled("dropout=0", "objective.mlm.weight=0.1", "optimiser.chunk=3")
    in_double(trainer)
    term, batch = trainer.terms[1], trainer.reader(np.arange(8), "now")
    loss = float(term(batch, lambda value: value))
    found = {n: p.grad.double().clone() for n, p in term.network.named_parameters() if p.grad is not None}

    assert term.network.base_model is trainer.model.transformer
    assert term.network.get_output_embeddings().weight is trainer.model.word_embeddings.weight
    network = copy.deepcopy(term.network)
    network.zero_grad()
    losses = []
    for seen, labels in term.masked(batch):
        for ids, wanted in zip(seen, labels, strict=True):
            logits = network(input_ids=torch.tensor(ids).unsqueeze(0)).logits[0]
            places = np.flatnonzero(wanted != IGNORED)
            losses += [-torch.log_softmax(logits[place], dim=-1)[wanted[place]] for place in places]
    expected = 0.1 * torch.stack(losses).mean()
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-6)
    for name, parameter in network.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad, atol=1e-9, rtol=1e-6)


def test_masking_is_berts():
    rng = np.random.default_rng(0)
    sequences = [np.array([2, *range(10, 40), 3])] * 4000
    seen, labels = mask_tokens(sequences, share=0.15, mask_id=4, vocabulary=300, around=(1, 1), rng=rng)
    chosen = np.concatenate(labels) != IGNORED
    before, after = np.concatenate(sequences), np.concatenate(seen)
    inner = np.isin(before, [2, 3], invert=True)
    assert not chosen[~inner].any()
    assert chosen[inner].mean() == pytest.approx(0.15, abs=0.003)
    assert (after[~chosen] == before[~chosen]).all()
    assert (np.concatenate(labels)[chosen] == before[chosen]).all()
    masked = after[chosen] == 4
    assert masked.mean() == pytest.approx(0.8, abs=0.01)
    assert (after[chosen] == before[chosen]).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "albert", "mpnet"])
def test_chunks_and_embeddings_from_outside_give_the_vectors_of_one_sentence_at_a_time(kind):
    transformer = tiny(kind).eval()
    rng = np.random.default_rng(0)
    sequences = [rng.integers(5, 50, size=size) for size in (3, 9, 4, 9, 1, 6, 2)]
    model = SentenceModel(transformer, "avg", torch.nn.Identity())
    forward = Forward(transformer.config.pad_token_id, 3, "cpu")
    with torch.no_grad():
        vectors = forward(model, model.head, forward.chunks(sequences), None)
        torch.testing.assert_close(vectors, plain_vectors(model, model.head, sequences), atol=1e-5, rtol=1e-4)


def test_a_trained_copy_gets_the_gradient_of_the_equations_and_is_stepped_before_it_follows(assembled):
    trainer = assembled(
        "dropout=0",
        *MOCOSE[:3],
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
    naive_info_nce(query, key, temperature=0.05, queue=trainer.queue.columns()).backward()
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
    before = naive_info_nce(both, vectors(tables), temperature=0.05)
    before.backward()
    moved = [table.detach() + 0.1 * table.grad.sign() for table in tables]
    expected = naive_info_nce(vectors(moved), vectors(moved), temperature=0.05)
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
