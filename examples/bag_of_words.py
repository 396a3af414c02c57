"""A bag of words, evaluated through SentEval's interface.

    python -m stsbench.compat.senteval examples/bag_of_words.py FOLDER [TASK ...]

FOLDER is the one that holds `downstream`. Each word gets a random vector that depends on the word alone; a
sentence is the mean of its words'. That such a model is well above chance is worth knowing of any task.
"""

import sys
import zlib

import numpy as np
import senteval

DIMENSIONS = 300


def prepare(params, samples):
    """Give each word of a task a vector."""
    params.word_vectors = {
        word: np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSIONS)
        for word in {word for sample in samples for word in sample}
    }


def batcher(params, batch):
    """Return the mean of the words' vectors; of nothing, zeros."""
    sentences = [[params.word_vectors[word] for word in sentence] for sentence in batch]
    return np.vstack([np.mean(vectors, axis=0) if vectors else np.zeros(DIMENSIONS) for vectors in sentences])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("name the folder that holds `downstream`: bag_of_words.py FOLDER [TASK ...]")
    params = {"task_path": sys.argv[1], "usepytorch": False, "kfold": 10, "seed": 1111}
    tasks = sys.argv[2:] or ["STS12", "STSBenchmark", "CR", "TREC", "MRPC"]
    for task, result in senteval.engine.SE(params, batcher, prepare).eval(tasks).items():
        print(task, {name: value for name, value in result.items() if name != "yhat"})
