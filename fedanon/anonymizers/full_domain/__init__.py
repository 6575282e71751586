"""Full-domain generalisation, solved exactly."""
