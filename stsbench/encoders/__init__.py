"""Text to matrix: what can encode sentences, and the planner and the cache that make it cheap."""

from stsbench.encoders.load import load
from stsbench.encoders.plan import Embeddings, EncodingCost, embed
from stsbench.encoders.postprocess import normalize, truncate, whiten
from stsbench.encoders.protocol import Encoder, Identity, Tokenized
from stsbench.encoders.saved import SavedVectors

__all__ = [
    "Embeddings",
    "Encoder",
    "EncodingCost",
    "Identity",
    "SavedVectors",
    "Tokenized",
    "embed",
    "load",
    "normalize",
    "truncate",
    "whiten",
]
