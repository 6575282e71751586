"""Across nodes: Flower carries the arrays of :mod:`fedanon.learning`. The only package that imports flwr."""
