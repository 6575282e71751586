"""What a column is, by its name and by the shape of its values: one word list and one set of shapes for all of fedanon.

Values are looked at and never reported: a finding names columns, words of their names, and counts.
"""
