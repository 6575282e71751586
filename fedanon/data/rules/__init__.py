"""Rules: what a column may hold and how it is generalized, said without a list of its values.

A rule knows every value of its domain, seen or not, so next month's file fits the schema of this month's. Number rules
(:mod:`dates`, :mod:`bands`) turn cells into numbers and intervals into text; code rules (:mod:`prefixes`, :mod:`icd`)
give each code its path up a taxonomy. What a cell loses follows from the rule's domain alone, so two files of one
schema, the nodes of a federation and a release read back agree on it.
"""

from fedanon.data.rules.bands import BandRule
from fedanon.data.rules.base import CodeRule, Domain, NumberRule, RuleError, bind_codes, extend_tree, path_of, take_only
from fedanon.data.rules.dates import DateRule
from fedanon.data.rules.icd import IcdRule
from fedanon.data.rules.prefixes import PrefixRule

__all__ = [
    "BandRule",
    "CodeRule",
    "DateRule",
    "Domain",
    "IcdRule",
    "NumberRule",
    "PrefixRule",
    "RuleError",
    "bind_codes",
    "extend_tree",
    "path_of",
    "take_only",
]
