"""Microaggregation: numeric records in groups of at least k, each published as the mean of its group.

:mod:`mdav` takes groups one after the other, :mod:`orders` puts the records into an order and cuts it, :mod:`brkga` and
:mod:`derivative_free` search; :mod:`individual_ranking` treats columns alone and :mod:`dp_microaggregation` adds noise.
"""
