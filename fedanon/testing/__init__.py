"""What every component must keep, as plain functions: run them on yours as our own tests run them on ours.

A check raises AssertionError with what is wrong, and returns what it saw otherwise. Nothing beyond fedanon is needed::

    from fedanon.testing import check_anonymizer

    def test_coin_toss() -> None:
        check_anonymizer(CoinToss(k=3))

Without a table a check makes small ones of every kind a component meets: ties, missing values, several rows per person,
two people. Given a table, as by a property test, it looks at that one alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon._lazy import lazy_exports

if TYPE_CHECKING:
    from fedanon.testing.anonymizers import check_anonymizer, check_row_order
    from fedanon.testing.attacks import check_attack
    from fedanon.testing.examples import example_release, example_table, example_tables
    from fedanon.testing.learning import check_model, check_strategy
    from fedanon.testing.releases import check_metric, check_privacy_model
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "check_anonymizer": "fedanon.testing.anonymizers",
            "check_attack": "fedanon.testing.attacks",
            "check_metric": "fedanon.testing.releases",
            "check_model": "fedanon.testing.learning",
            "check_privacy_model": "fedanon.testing.releases",
            "check_row_order": "fedanon.testing.anonymizers",
            "check_strategy": "fedanon.testing.learning",
            "example_release": "fedanon.testing.examples",
            "example_table": "fedanon.testing.examples",
            "example_tables": "fedanon.testing.examples",
        },
    )

__all__ = [
    "check_anonymizer",
    "check_attack",
    "check_metric",
    "check_model",
    "check_privacy_model",
    "check_row_order",
    "check_strategy",
    "example_release",
    "example_table",
    "example_tables",
]
