"""A step of every term, through the network: equal to the naive computation one sentence at a time, in float64."""

import copy

import numpy as np
import pytest
import torch
from small_trainings import plain_vectors

from stsbench.training.guesses import IGNORED, mask_tokens

HARD = "negatives.hard.weight=2"


@pytest.fixture
def triplets(tmp_path):
    from stsbench.data.benchmarks import sample_sentences

    sentences = sample_sentences()
    path = tmp_path / "triplets.tsv"
    path.write_text("".join("\t".join(sentences[i : i + 3]) + "\n" for i in range(0, 60, 3)), encoding="utf-8")
    return path


def trained(trainer):
    return {n: p for n, p in trainer.model.named_parameters() if p.requires_grad}


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
    losses = [term(batch, lambda loss: loss) for term in trainer.terms]
    found = {n: p.grad.double().clone() for n, p in trained(trainer).items() if p.grad is not None}
    trainer.model.zero_grad()
    return float(torch.stack(losses).sum()), found


def naive_loss(query, key, hard, queue, temperature, weight):
    """The equations sum by sum, on tensors that carry a gradient."""

    def sim(u, v):
        return u @ v / (u.norm() * v.norm())

    losses = []
    for i in range(len(query)):
        below = sum(torch.exp(sim(query[i], row) / temperature) for row in key)
        below = below + sum(
            (weight if i == j else 1) * torch.exp(sim(query[i], row) / temperature) for j, row in enumerate(hard)
        )
        below = below + sum(torch.exp(sim(query[i], row) / temperature) for row in queue)
        losses.append(-torch.log(torch.exp(sim(query[i], key[i]) / temperature) / below))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("cached", [False, True])
def test_conserts_loss_and_gradient_equal_the_pairs_one_sentence_at_a_time(cached, assembled):
    overrides = ["dropout=0", "objective={loss: nt-xent, temperature: 0.1, weight: 0.3}", "optimiser.chunk=3"]
    trainer = assembled(*overrides, "views.key={kind: crop, rate: 0.3}", f"optimiser.gradient_cache={cached}")
    in_double(trainer)
    batch = trainer.reader(np.arange(8), "now")
    loss, found = gradients(trainer, batch)
    model = trainer.model
    rows = [*plain_vectors(model, model.head, batch.query), *plain_vectors(model, model.head, batch.key)]
    terms = []
    for i, own in enumerate(rows):
        sims = [own @ row / (own.norm() * row.norm()) / 0.1 for row in rows]
        below = sum(torch.exp(sim) for k, sim in enumerate(sims) if k != i)
        terms.append(-torch.log(torch.exp(sims[(i + 8) % 16]) / below))
    expected = 0.3 * torch.stack(terms).mean()
    expected.backward()
    assert loss == pytest.approx(expected.item(), abs=1e-9)
    for name, weight in trained(trainer).items():
        if weight.grad is not None:
            torch.testing.assert_close(found[name], weight.grad.double(), atol=1e-9, rtol=1e-6)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("kind", ["simcse", "esimcse", "supervised"])
def test_loss_and_weights_gradient_equal_the_naive_computation(kind, cached, assembled, triplets, corpus):
    overrides = ["dropout=0", "head=dense-tanh", "optimiser.chunk=3", f"optimiser.gradient_cache={cached}"]
    if kind == "esimcse":
        overrides += ["views.key={kind: subword-repetition, rate: 0.5}", "negatives.queue.size=20"]
    if kind == "supervised":
        overrides += ["corpus.columns=3", HARD]
    trainer = assembled(*overrides, file=triplets if kind == "supervised" else corpus)
    in_double(trainer)
    if kind == "esimcse":
        trainer.queue.push(trainer.reader(np.arange(20, 31), "before"), torch.zeros(0))
    batch = trainer.reader(np.arange(8), "now")
    queue = (
        None if trainer.queue is None else trainer.queue.columns()
    )  # as the loss sees it: the batch enters it later
    loss, found = gradients(trainer, batch)

    double = copy.deepcopy(trainer.model)
    double.zero_grad()
    vectors = [plain_vectors(double, double.head, side) for side in (batch.query, batch.key, batch.hard) if side]
    expected = naive_loss(
        vectors[0],
        vectors[1],
        vectors[2] if len(vectors) > 2 else [],
        [] if queue is None else queue,
        0.05,
        2,
    )
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-6, abs=1e-6)
    wanted = {n: p.grad for n, p in double.named_parameters() if p.grad is not None}
    assert set(found) == set(wanted)
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-9, rtol=1e-6)


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


def test_an_untied_masked_language_head_starts_as_a_copy_of_the_word_table_and_is_trained_apart(assembled):
    trainer = assembled("objective.mlm={weight: 0.1, tied: false}", "dropout=0")
    table, decoder = trainer.model.word_embeddings.weight, trainer.terms[1].network.get_output_embeddings().weight
    assert decoder is not table
    assert torch.equal(decoder, table)
    tied = assembled("objective.mlm.weight=0.1", "dropout=0")
    losses = [float(one.step(0)[0]) for one in (trainer, tied)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)  # the two part with the first update
    assert not torch.equal(decoder, table)
    assert trainer.terms[1].network.base_model is trainer.model.transformer


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


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "DistilBert", "Albert", "MPNet"])
def test_chunks_and_embeddings_from_outside_give_the_vectors_of_one_sentence_at_a_time(kind):
    import transformers

    from stsbench.training.model import Forward, SentenceModel

    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    match kind:
        case "DistilBert":
            config = transformers.DistilBertConfig(vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=24)
        case "Albert":
            config = transformers.AlbertConfig(**sizes, intermediate_size=24, embedding_size=8, pad_token_id=0)
        case _:
            pad = {} if kind == "Bert" else {"pad_token_id": 1}
            config = getattr(transformers, f"{kind}Config")(**sizes, intermediate_size=24, **pad)
    torch.manual_seed(0)
    transformer = getattr(transformers, f"{kind}Model")(config).eval()
    rng = np.random.default_rng(0)
    sequences = [rng.integers(5, 50, size=size) for size in (3, 9, 4, 9, 1, 6, 2)]
    model = SentenceModel(transformer, "avg", torch.nn.Identity())
    forward = Forward(config.pad_token_id or 0, 3, "cpu")
    with torch.no_grad():
        vectors = forward(model, model.head, forward.chunks(sequences), None)
        torch.testing.assert_close(vectors, plain_vectors(model, model.head, sequences), atol=1e-5, rtol=1e-4)
