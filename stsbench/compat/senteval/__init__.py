"""SentEval's interface: `engine.SE(params, batcher, prepare).eval(tasks)`.

A script that says `import senteval` runs unchanged after

    import sys, stsbench.compat.senteval
    sys.modules["senteval"] = stsbench.compat.senteval

or with `python -m stsbench.compat.senteval script.py`, which also restores calls that Transformers 5 removed
(`engine.supply_removed_calls`).

Results have the keys of the original, and those of the fork in SimCSE's repository:

- STS12 to STS16 have an `all` entry with `mean` and `wmean`, and the fork's `all`: one correlation over the
  concatenated pairs.
- `STSBenchmark` and `SICKRelatedness` have the original's keys, of a trained regressor (`pearson`, `spearman`,
  `mse`, `yhat`, `devpearson`, `ndev`, `ntest`), and the fork's, of plain similarities: `train`, `dev`, `test`, and
  `all`, which pools the three. `eval` encodes test sentences; the others are encoded when a key needs them. The
  regressor is trained when one of its keys is read, but not when the whole result is printed or stored.
- `STSBenchmark-finetune` and `SICKRelatedness-finetune` are the fork's names of the regressors, stopped by
  Spearman; `STSBenchmark-dev` is only its dev pairs.

`params["results"]`, or the variable `STSBENCH_SENTEVAL`, selects one set of keys: `senteval` or `simcse` instead
of `both`.

`params["splits"]`, or `STSBENCH_SENTEVAL_SPLITS`, selects splits of these two tasks (such as `["test"]` or
`"train,dev,test"`): `eval` encodes all of them at once, and results have only these.

Other parameters, by SentEval's names: `task_path` (the folder that holds `downstream` and `probing`; missing files
are searched for in the other data folders), `usepytorch` (True: the net with early stopping; False: logistic
regression, here solved to convergence), `kfold`, `classifier`, `seed`, `batch_size`, `similarity`. Ours: `tokens`
("str" or "bytes": the type of the batcher's tokens), `device` (of the classifiers; by default CUDA if available)
and `cache` (True: each sentence is encoded once over all tasks; only valid if its vector depends on nothing else.
Off by default; `STSBENCH_SENTEVAL_CACHE=1` turns it on for a script).
"""

from stsbench.compat.senteval import engine, utils
from stsbench.compat.senteval.engine import SE

__all__ = ["SE", "engine", "utils"]
