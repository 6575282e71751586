"""Risk and utility measures of statistical disclosure control (Morais 2022, chapters 3 and 5; R's sdcMicro).

Every module holds pure functions over arrays, which need no release, and the metrics made of them. The risk of an
original table is that of its identity release. docs/sdc_measures.md lists all with their equations and names.
"""
