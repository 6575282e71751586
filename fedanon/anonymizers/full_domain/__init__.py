"""Full-domain generalization: one level per column for all records, the best combination found exactly."""
