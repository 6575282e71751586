"""GFKMC, the thesis's generalise-first weighted k-member clustering."""
