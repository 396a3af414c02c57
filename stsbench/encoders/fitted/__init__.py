"""What `stsbench fit` leaves, as an encoder: read `encoder` first, then `folder`.

`layered` is the folder of a whitening that sentence-transformers reads, too; `flow` is the map of a flow.
"""
