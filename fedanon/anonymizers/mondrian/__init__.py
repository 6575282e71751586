"""Mondrian, top-down."""
