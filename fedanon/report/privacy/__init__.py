"""The risk report for a data protection officer: evidence about a release or a federation, in several languages."""
