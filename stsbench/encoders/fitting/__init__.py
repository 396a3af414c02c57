"""Fitting post-processing to a model's vectors of given sentences: whitening, or a flow.

The verb is `fit` (in `fit`); `likelihood` trains a flow. What comes of it is in `fitted`.
"""
