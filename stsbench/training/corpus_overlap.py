"""What a corpus to train on holds of the sentences that encoders are scored on: counted once, told everywhere.

Sentences alone, as released and by letters and digits, in one pass over the corpus: `data overlap --corpus`
counts pairs and near-duplicates, too. Of labelled tables `leakage` tells.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.data.benchmarks import load_sts
from stsbench.data.overlap import Met, sentences_met
from stsbench.data.sentences import sentences_in
from stsbench.training.leakage import SCORED


@dataclass(frozen=True)
class CorpusOverlap:
    """What a corpus holds of the sentences of the STS tasks.

    Attributes:
        met: of each set that is here.
        absent: sets that are not here, or cannot be read.
    """

    met: Mapping[str, Met]
    absent: Sequence[str]

    @classmethod
    def count(cls, texts: Iterable[str], data_dirs: Sequence[Path] = ()) -> "CorpusOverlap":
        """Hold a corpus against the test splits of the STS tasks, and STS-B's dev split.

        Args:
            texts: of the corpus; not read where none of the sets is here.
            data_dirs: folders to look for the sets in.
        """
        sets, absent = {}, []
        for name in SCORED:
            task, _, split = name.partition(":")
            try:
                sets[name] = sentences_in(load_sts(task, split, data_dirs=data_dirs))
            except UserError:
                absent.append(name)
        return cls(sentences_met(texts, sets) if sets else {}, absent)

    def sentence(self) -> str:
        """Return it in one sentence; empty where none of the sets is here."""
        if not self.met:
            return ""
        some = [
            f"{met.letters:,} of the {met.distinct:,} of {name} ({met.released:,} as released)"
            for name, met in self.met.items()
            if met.letters
        ]
        none = [name for name, met in self.met.items() if not met.letters]
        parts = [
            f"it holds {listed(some)}" if some else "",
            f"it holds none of {listed(none)}" if none else "",
            f"nobody looked for those of {listed(list(self.absent))}, not here or broken" if self.absent else "",
        ]
        return (
            "the corpus and the distinct sentences that encoders are scored on, by letters and digits: "
            f"{'; '.join(filter(None, parts))}."
        )
