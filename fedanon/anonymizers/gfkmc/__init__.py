"""The methods of the thesis: DAS cuts numeric columns at percentiles; GFKMC generalizes first, then clusters.

WKMCA is the weighted k-member clustering that GFKMC builds on.
"""
