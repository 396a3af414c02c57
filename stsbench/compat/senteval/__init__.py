"""SentEval's interface: `engine.SE(params, batcher, prepare).eval(tasks)`.

A script that says `import senteval` runs unchanged after

    import sys, stsbench.compat.senteval
    sys.modules["senteval"] = stsbench.compat.senteval

or with `python -m stsbench.compat.senteval script.py`.

Two shapes of results exist, chosen by `params["results"]` or the variable `STSBENCH_SENTEVAL`:

- `senteval` (default), the original's: STS12 to STS16 have an `all` entry with `mean` and `wmean`; `STSBenchmark`
  and `SICKRelatedness` are trained regressors (`pearson`, `spearman`, `mse`, `yhat`, `devpearson`).
- `simcse`, the SimCSE fork's: the `all` entries have `all` too, one correlation over the concatenated pairs;
  `STSBenchmark` and `SICKRelatedness` are plain similarities, one entry each for `train`, `dev` and `test`
  (their `all` pools the three), and the regressors are called `STSBenchmark-finetune` and
  `SICKRelatedness-finetune`.

Other parameters, by SentEval's names: `task_path` (the folder that holds `downstream` and `probing`),
`usepytorch` (True: the net with early stopping; False: logistic regression, here solved to convergence), `kfold`,
`classifier`, `seed`, `batch_size`, `similarity`. Ours: `tokens` ("str" or "bytes": what the batcher is handed)
and `device` (where classifiers compute; CUDA where there is some, by default).
"""

from stsbench.compat.senteval import engine, utils
from stsbench.compat.senteval.engine import SE

__all__ = ["SE", "engine", "utils"]
