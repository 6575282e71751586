"""Clustering: classes are grown around seed records (CB, k-member, OKA) or split from above (TDG)."""
