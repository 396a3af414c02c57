"""What the benchmarks are: the catalogue, finding, fetching, verifying and reading; the bundled sample."""

from stsbench.datasets.catalogue import data_set, data_sets
from stsbench.datasets.corpus import load_corpus
from stsbench.datasets.fetch import Fetched, get
from stsbench.datasets.locate import DataNotFoundError
from stsbench.datasets.nli_triplets import TripletCounts, write_nli_triplets
from stsbench.datasets.overview import catalogue_table, verify, where
from stsbench.datasets.read_pairs import load_pairs
from stsbench.datasets.read_sample import load_sample, load_sample_labelled, sample_sentences
from stsbench.datasets.read_sts import load_sts
from stsbench.datasets.read_transfer import load_labelled
from stsbench.datasets.tables import FileRead, LabelledData, StsData

__all__ = [
    "DataNotFoundError",
    "Fetched",
    "FileRead",
    "LabelledData",
    "StsData",
    "TripletCounts",
    "catalogue_table",
    "data_set",
    "data_sets",
    "get",
    "load_corpus",
    "load_labelled",
    "load_pairs",
    "load_sample",
    "load_sample_labelled",
    "load_sts",
    "sample_sentences",
    "verify",
    "where",
    "write_nli_triplets",
]
