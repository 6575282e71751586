"""Show it: self-contained pages and PDF files for people who did not run it."""
