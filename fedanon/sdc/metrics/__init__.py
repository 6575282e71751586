"""Risk and utility metrics of statistical disclosure control (Morais 2022, chapters 3 and 5; R's sdcMicro).

Every module holds pure functions of arrays, which need no release, and the metrics made from them. The risk of an
original table is that of its identity release. docs/reference/sdc_metrics.md lists all metrics with their equations.
"""
