"""Differential privacy: where noise comes from and what it costs."""
