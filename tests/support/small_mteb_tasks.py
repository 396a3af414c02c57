"""Small tasks of MTEB on sentences of ours, scored by MTEB itself without a network."""

import json

import numpy as np
import pytest

CORPUS = {
    "d1": "The ferry to the island leaves at seven in the morning.",
    "d2": "In winter the ferry does not sail on Sundays.",
    "d3": "A ticket for the ferry costs four coins at the pier.",
    "d4": "The baker on the square sells rye bread until noon.",
    "d5": "Rye bread keeps for a week in a linen bag.",
    "d6": "The lighthouse keeper counts gulls after supper.",
    "d7": "Gulls nest on the cliffs below the lighthouse.",
    "d8": "The library lends maps of the island for a month.",
    "d9": "Old maps show a harbour where the square is today.",
    "d10": "A storm tore the roof from the library last winter.",
    "d11": "The school choir sings at the harbour in spring.",
    "d12": "Bicycles can be hired behind the school.",
}
QUERIES = {
    "q1": "When does the ferry leave in the morning?",
    "q2": "What does a ferry ticket cost?",
    "q3": "Where is rye bread sold?",
    "q4": "How long does rye bread keep?",
    "q5": "Who counts the gulls?",
    "q6": "Where can I borrow maps of the island?",
    "q7": "What did the storm do to the roof?",
    "q8": "Where do people hire bicycles?",
    "q9": "Which choir sings in spring?",
    "d2": "Does the ferry sail in winter on Sundays?",
}
QRELS = {
    "q1": {"d1": 2, "d2": 1, "d3": 0},
    "q2": {"d3": 2, "d1": 1},
    "q3": {"d4": 1},
    "q4": {"d5": 1, "d4": 1},
    "q5": {"d6": 2, "d7": 1},
    "q6": {"d8": 1},
    "q7": {"d10": 1, "d8": 0},
    "q8": {"d12": 1},
    "q9": {"d11": 1, "d12": 1},
    "d2": {"d1": 1, "d2": 1},
}
PAIRS = [
    ("The ferry leaves at seven.", "At seven the ferry leaves.", 1),
    ("The baker sells rye bread.", "Rye bread is sold by the baker.", 1),
    ("Gulls nest on the cliffs.", "On the cliffs gulls have their nests.", 1),
    ("The library lends maps.", "Maps are lent by the library.", 1),
    ("A storm tore the roof off.", "The roof was torn off by a storm.", 1),
    ("The ferry leaves at seven.", "The choir sings in spring.", 0),
    ("The baker sells rye bread.", "The baker sells no bread today.", 0),
    ("Gulls nest on the cliffs.", "Bicycles can be hired here.", 0),
    ("The library lends maps.", "The library lost its maps.", 0),
    ("A storm tore the roof off.", "The keeper counts gulls.", 0),
]


def by_letters(texts):
    """Return how often each letter stands in a text."""
    return np.array(
        [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], "f4"
    )


def by_words(texts):
    """Return which words a text has, each in one of 64 places."""
    vectors = np.zeros((len(texts), 64), "f4")
    for vector, text in zip(vectors, texts, strict=True):
        for word in text.lower().strip(".?").split():
            vector[sum(ord(letter) * 31**place for place, letter in enumerate(word)) % 64] += 1
    return vectors


def by_first_word(texts):
    """Return what makes many documents alike: whether a text begins with an article."""
    return np.array([[1.0, 0.0] if text.startswith(("The ", "A ")) else [1.0, 1.0] for text in texts], "f4")


def model(name, encode):
    """Return an encoder as mteb asks for one; `encode` is a function, or has one for each side."""
    mteb = pytest.importorskip("mteb", reason="needs mteb: pip install mteb")
    from mteb.models import ModelMeta

    class Ours:
        mteb_model_meta = ModelMeta.create_empty({"name": f"owner/{name}", "revision": "1"})

        def encode(self, inputs, *, prompt_type=None, **_):
            of_side = encode[prompt_type.value] if isinstance(encode, dict) else encode
            return of_side([text for batch in inputs for text in batch["text"]])

        def similarity(self, one, other):
            return mteb.similarity_functions.cos_sim(one, other)

        def similarity_pairwise(self, one, other):
            return mteb.similarity_functions.pairwise_cos_sim(one, other)

    return Ours()


def _metadata(name, kind, main_score):
    from mteb.abstasks.task_metadata import TaskMetadata

    return TaskMetadata(
        name=name,
        description="Sentences about an island.",
        type=kind,
        category="t2t",
        main_score=main_score,
        dataset={"path": "owner/island", "revision": "1"},
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        modalities=["text"],
    )


def retrieval(*, drops=False):
    """Return a retrieval task; after it ran `.by_query` has trec_eval's numbers of each query, not rounded.

    It may drop documents with the id of their query.
    """
    pytest.importorskip("mteb", reason="needs mteb: pip install mteb")
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval

    class Island(AbsTaskRetrieval):
        metadata = _metadata("IslandRetrieval", "Retrieval", "ndcg_at_10")
        by_query: dict[str, dict[str, float]]

        def load_data(self, *_, **__):
            self.dataset = {
                "default": {
                    "test": {
                        "corpus": Dataset.from_list(
                            [{"id": key, "text": text, "title": ""} for key, text in CORPUS.items()]
                        ),
                        "queries": Dataset.from_list([{"id": key, "text": text} for key, text in QUERIES.items()]),
                        "relevant_docs": {query: dict(judged) for query, judged in QRELS.items()},
                        "top_ranked": None,
                    }
                }
            }
            self.data_loaded = True

        def task_specific_scores(self, scores, *_, **__):
            self.by_query = scores
            return {}

    task = Island()
    task.ignore_identical_ids = drops
    return task


def pair_classification():
    """Return a task of pairs with the labels 1 and 0."""
    pytest.importorskip("mteb", reason="needs mteb: pip install mteb")
    from datasets import Dataset
    from mteb.abstasks.pair_classification import AbsTaskPairClassification

    class Island(AbsTaskPairClassification):
        metadata = _metadata("IslandPairs", "PairClassification", "max_ap")

        def load_data(self, *_, **__):
            first, second, labels = zip(*PAIRS, strict=True)
            columns = {"sentence1": list(first), "sentence2": list(second), "labels": list(labels)}
            self.dataset = {"test": Dataset.from_dict(columns)}
            self.data_loaded = True

    return Island()


def evaluated(task, name, encode, folder):
    """Return mteb's scores of a task, whose predictions are in a folder then."""
    import mteb

    result = mteb.evaluate(
        model(name, encode), task, cache=None, prediction_folder=folder, show_progress_bar=False, co2_tracker=False
    )
    (scores,) = result.task_results[0].scores["test"]
    return dict(scores)


def scored_by_mteb(data, encode, **options):
    """Return MTEB's scores of its STS12 with other pairs in it; the test is skipped where mteb is absent.

    Args:
        data: the pairs.
        encode: what encodes, as `owner/ours` at revision 1.
        options: of MTEB's `evaluate`.
    """
    mteb = pytest.importorskip("mteb", reason="needs mteb, in an environment of its own")
    from datasets import Dataset

    task = mteb.get_task("STS12")
    columns = {name: data.pairs[name].tolist() for name in ("sentence1", "sentence2")}
    task.dataset = {"test": Dataset.from_dict(columns | {"score": data.pairs["gold"].tolist()})}
    task.data_loaded = True
    (scores,) = task.evaluate(model("ours", encode), "test", encode_kwargs={}, num_proc=None, **options).values()
    return dict(scores)


def write_predictions(folder, task, **splits):
    """Write a file of predictions as MTEB does; `splits` has the content of each split."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{task}_predictions.json"
    meta = {"mteb_model_meta": {"model_name": "owner/model", "revision": "no_revision_available"}}
    path.write_text(json.dumps(meta | {"default": splits}), encoding="utf-8")
    return path


def write_beir(folder, *, qrels=None):
    """Write the retrieval task as a folder in BEIR's layout, perhaps with other judgements; return the folder."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, texts in (("corpus", CORPUS), ("queries", QUERIES)):
        rows = [json.dumps({"_id": key, "text": text}) for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = [f"{query}\t{key}\t{value}\n" for query, of in (qrels or QRELS).items() for key, value in of.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
    return folder
