"""Is this difference real, and is this number right? The verbs that judge runs by their items.

`compare` tells whether two models, or two methods over seeds, differ; `rank` orders many; `check` holds a run
against published rows or a predecessor's run; `plan` and `best_of` say what pairs and seeds can show.

Read `aligned` first, on which all of them stand: any number of models on the same items. `compare` holds two of
them against each other (`comparison` is what comes of it), `seeds` methods, `rank` many; `baseline` and
`published` are the kinds of check (`verdicts` is what comes of them); `overlap` looks for test sentences in a
training corpus.
"""
