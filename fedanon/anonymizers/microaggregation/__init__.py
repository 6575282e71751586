"""Microaggregation: numeric records in groups of at least k, each published as the mean of its group."""
