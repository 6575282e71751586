"""Compare everything: an experiment is one TOML file, expanded to cells, run in parallel, resumable, traceable."""
