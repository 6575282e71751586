"""Lower bounds: the least loss that any partition into classes of k records can have, proved."""
