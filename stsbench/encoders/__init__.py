"""Text to vectors: the encoders, and the planner and the cache that make them fast.

The verbs are `load` (in `load`: from a name, a path or a callable to an `Encoder`), `embed` (in `plan`: from an
encoder and texts to `Embeddings`; in `load`: to an array; in `embedded`: to a file) and `fit` (in `fit`: from
vectors to a whitening or a flow). Read `protocol` first, then `use`, `plan` and `cache`.

`prompts` and `template` are the text around a sentence. The encoders are `transformer` (its files: `checkpoint`,
`weights`, `sentence_transformers`; its text: `tokenizer`, `rendering`; its vectors: `network`, `poolers`,
`backends`), `simple` (callables, word vectors, saved vectors), `endpoint` (servers), `mteb_models` and `fitted`
(with `flow`). `fitted` also has the processing of vectors that needs no fit: truncation, normalisation, whitening
on the task itself.
"""
