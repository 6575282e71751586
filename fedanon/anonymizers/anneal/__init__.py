"""Annealing: a local search over classes of k to 2k - 1 records, with the least loss found in a budget of time."""
