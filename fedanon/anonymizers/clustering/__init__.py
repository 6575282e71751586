"""Classes grown around seed records, or split from above."""
