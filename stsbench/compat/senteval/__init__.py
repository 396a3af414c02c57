"""SentEval's interface: `engine.SE(params, batcher, prepare).eval(tasks)`.

A script that says `import senteval` runs unchanged after

    import sys, stsbench.compat.senteval
    sys.modules["senteval"] = stsbench.compat.senteval

or with `python -m stsbench.compat.senteval script.py`, which also gives Transformers back what version 5 removed
(`engine.supply_removed_calls`).

Results answer in two shapes, the original's and that of the fork in SimCSE's repository:

- STS12 to STS16 have an `all` entry with `mean` and `wmean`, and the fork's `all`: one correlation over the
  concatenated pairs.
- `STSBenchmark` and `SICKRelatedness` have the original's keys, of a trained regressor (`pearson`, `spearman`,
  `mse`, `yhat`, `devpearson`, `ndev`, `ntest`), and the fork's, of plain similarities: `train`, `dev`, `test`, and
  `all`, which pools the three. Test sentences are encoded by `eval`, the others when a key that needs them is
  read; the regressor is trained when one of its keys is read, not where the whole result is printed or stored.
- `STSBenchmark-finetune` and `SICKRelatedness-finetune` are the fork's names of the regressors, stopped by
  Spearman; `STSBenchmark-dev` is its dev pairs alone.

`params["results"]`, or the variable `STSBENCH_SENTEVAL`, asks for one shape alone: `senteval` or `simcse` instead
of `both`.

`params["splits"]`, or `STSBENCH_SENTEVAL_SPLITS`, names the splits of these two (`["test"]`, say, or
`"train,dev,test"`): they are all encoded by `eval`, and there are no others.

Other parameters, by SentEval's names: `task_path` (the folder that holds `downstream` and `probing`; what is not
there is looked for in the other places of data),
`usepytorch` (True: the net with early stopping; False: logistic regression, here solved to convergence), `kfold`,
`classifier`, `seed`, `batch_size`, `similarity`. Ours: `tokens` ("str" or "bytes": what the batcher is handed),
`device` (where classifiers compute; CUDA where there is some, by default) and `cache` (True: a sentence that the
batcher has been handed is not encoded again, in any task; right where its vector depends on the sentence alone.
Off by default; `STSBENCH_SENTEVAL_CACHE=1` turns it on for a script).
"""

from stsbench.compat.senteval import engine, utils
from stsbench.compat.senteval.engine import SE

__all__ = ["SE", "engine", "utils"]
