"""`evaluate`: measure an encoder, or saved similarities, from Python."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

from stsbench.base.errors import UserError
from stsbench.base.options import DATA, LARGEST_SEED, RUN, Help, Named, Panel, Spelled, Within
from stsbench.base.progress import Progress, silent
from stsbench.data.views import PairView
from stsbench.encoders.checkpoint import hash_ahead
from stsbench.encoders.load import load_with
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.use import Use, UseOptions, names, option_of, takes_use
from stsbench.records.record import RunRecord
from stsbench.scoring.measure import measure_encoder, measure_similarities
from stsbench.scoring.predictions import SavedPredictions, similarities_from
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.saved import SavedSimilarities
from stsbench.scoring.settings import (
    KFOLD,
    SEED,
    Classification,
    Intervals,
    Settings,
    Stages,
)
from stsbench.scoring.tasks import SAMPLE_USED, AnyTask, is_sample, read_data


@takes_use
def evaluate(
    encoder: Encoder | str | Path | Callable[[list[str]], Any],
    tasks: Annotated[str | AnyTask | Sequence[str | AnyTask] | None, Named(), Spelled("--tasks", "-t")] = None,
    *,
    protocol: Protocol | None = None,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
    exclude_overlap: Annotated[bool, Panel(DATA)] = False,
    exclude: Annotated[Sequence[str | Path], Panel(DATA)] = (),
    classifier: str = "logreg",
    kfold: int = KFOLD,
    classifier_seed: Annotated[int, Within(0, LARGEST_SEED)] = SEED,
    intervals: Intervals | None = None,
    use_cache: bool = True,
    out: Annotated[
        str | Path | None,
        Panel(RUN),
        Help("The folder of the record. Default: `runs/<model>-<pooling>-<tasks>`."),
    ] = None,
    overwrite: Annotated[bool, Panel(RUN)] = False,
    progress: Progress = silent,
    **use: Unpack[UseOptions],
) -> RunRecord:
    """Measure an encoder on STS and transfer tasks.

    Args:
        encoder: an encoder, or what `load` makes one of: a name, a path, a callable `list[str] -> array`.
        tasks: `sts` or `transfer` (seven each), `all` (both), `supervised`, `sample`, `sample-transfer`, or names
            with split and text: `STS12,STS-B:dev,STS16@raw,TREC,STS-B:supervised`. By default `sts` if its data is
            here, else `sample`, with a warning. In Python also data that was read already.
        protocol: aggregation, metric, similarity and text; `simcse` by default (see `stsbench.protocol`).
        data: your own pairs instead of `tasks`: .tsv, .csv, .jsonl or .parquet.
        subset_column: the column of `data` that names subsets.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        exclude_overlap: whether to count a pair that stands in several tasks only once: it stays in the first of
            the seven, in the papers' order, whose test pairs have it.
        exclude: a training corpus; pairs with a sentence that stands in it are left out.
        classifier: the classifier of the transfer tasks: `logreg` (converged logistic regression) or `mlp-adam`
            (SentEval's net, the SimCSE papers').
        kfold: how many folds the transfer tasks have, at either level.
        classifier_seed: the seed of the folds of the tasks with a test set, of the net, and of the trained
            regressors.
        intervals: how intervals are computed.
        use_cache: whether to read and write the embedding cache.
        out: folder to save the record and its items in; None to keep them in memory.
        overwrite: whether to replace another measurement in that folder.
        progress: told how far it is.
        **use: how the model is used; of an encoder that is loaded already, what is done to its vectors alone.

    Returns:
        The record; `.table()`, `.frame`, `.signature` and `.items` look into it.

    Raises:
        UserError: for a person's mistake, in one sentence.

    >>> record = evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> record.scores[0].items
    252
    """
    stages = Stages(progress)
    if isinstance(encoder, str | Path):
        hash_ahead(encoder)
    asked = Use(**use)
    encoder = _loaded(encoder, asked)
    settings = Settings(
        protocol=protocol or Protocol(),
        use=asked,
        classification=Classification(classifier, kfold, classifier_seed),
        intervals=intervals or Intervals(),
        use_cache=use_cache,
        out=None if out is None else Path(out).expanduser(),
        overwrite=overwrite,
    )
    sets = read_data(
        tasks,
        protocol=settings.protocol,
        data=data,
        subset_column=subset_column,
        data_dirs=data_dirs,
        view=PairView(exclude_overlap, tuple(map(Path, exclude))),
    )
    if tasks is None and data is None and is_sample(sets):
        warnings.warn(SAMPLE_USED, stacklevel=2)
    stages.done("data")
    return measure_encoder(encoder, sets, settings, stages)


def _loaded(encoder: Encoder | str | Path | Callable[[list[str]], Any], use: Use) -> Encoder:
    """Return the encoder, loaded if it is not.

    Raises:
        UserError: if it is, and was to be loaded in another way; or it cannot be loaded.
    """
    if not isinstance(encoder, Encoder):
        return load_with(encoder, use)
    for name in use.changed():
        if name not in names("afterwards"):
            raise UserError(
                f"{option_of(name)} is for models that are to be loaded, and this one is loaded already: give it "
                "to `load`, or name the model."
            )
    return encoder


def evaluate_similarities(
    similarities: SavedSimilarities | SavedPredictions | str | Path,
    tasks: str | AnyTask | Sequence[str | AnyTask] | None = None,
    *,
    protocol: Protocol | None = None,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
    exclude_overlap: bool = False,
    exclude: Sequence[str | Path] = (),
    intervals: Intervals | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> RunRecord:
    """Score similarities that were computed elsewhere.

    Args:
        similarities: a .npy vector or a text file with one number a line: one for each scored pair, tasks one
            after the other, in the order of `.items`; or a prediction file of MTEB's
            (`STS12_predictions.json`), or a folder of those of one model.
        tasks: as in `evaluate`, and so are the others; by default those that MTEB's files are of.
        protocol: its metric and aggregation count; the similarity is the one given.
        data: a file of scored pairs of your own instead of `tasks`.
        subset_column: the column of that file that names each pair's subset.
        data_dirs: folders to look for data in.
        exclude_overlap: as in `evaluate`, and so is the next; one number for each pair that is left.
        exclude: see there.
        intervals: how intervals are computed.
        out: folder to save the record and its items in.
        overwrite: whether a record of another measurement in that folder may be replaced.
        progress: told how far it is.

    Raises:
        UserError: if there is not one finite number for each pair.
    """
    stages = Stages(progress)
    given = similarities_from(Path(similarities)) if isinstance(similarities, str | Path) else similarities
    if tasks is None and data is None and isinstance(given, SavedPredictions):
        tasks = given.tasks
    settings = Settings(
        protocol=protocol or Protocol(),
        intervals=intervals or Intervals(),
        out=None if out is None else Path(out).expanduser(),
        overwrite=overwrite,
    )
    sets = read_data(
        tasks,
        protocol=settings.protocol,
        data=data,
        subset_column=subset_column,
        data_dirs=data_dirs,
        view=PairView(exclude_overlap, tuple(map(Path, exclude))),
    )
    stages.done("data")
    return measure_similarities(given, sets, settings, stages)
