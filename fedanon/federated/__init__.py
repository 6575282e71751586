"""Across hospitals: Flower carries arrays; the only package that imports flwr."""
