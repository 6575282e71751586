"""Simulated annealing over classes, for least loss."""
