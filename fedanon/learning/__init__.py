"""Rounds of learning without Flower: settings, nodes, aggregation, validation, suspicion, checkpoints."""
