"""Mondrian: the space of quasi-identifiers is cut in two, again and again, while every part keeps k people."""
