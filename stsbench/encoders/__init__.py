"""Text to vectors: what can encode sentences, and the planner and the cache that make it cheap.

The verbs are `load` (in `load`: from a name, a path or a callable to an `Encoder`) and `embed` (in `plan`: from an
encoder and texts to `Embeddings`). Read `protocol` first, then `plan` and `cache`. The encoders are `transformer`
(with `checkpoint`, `tokenizer`, `network`, `poolers`, `sentence_transformers`), `static`, `saved` and `callables`.
`postprocess` is what may be done to vectors afterwards, `device` where they are computed.
"""
