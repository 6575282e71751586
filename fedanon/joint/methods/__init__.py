"""The federated anonymizers: one file each. None imports Flower, so that they can be listed without it."""
