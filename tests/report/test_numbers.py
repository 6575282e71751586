"""How numbers are written."""

from __future__ import annotations

import pytest

from fedanon.report.numbers import number, signed, with_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\u2013"),
        (float("nan"), "\u2013"),
        (3.0, "3"),
        (3689.18, "3,689"),
        (0.12345, "0.1235"),
        (0.00012346, "0.0001235"),
        (-1.5, "-1.500"),
        (float("inf"), "inf"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.82417, 0.0032, "0.8242 ± 0.0032"),
        (0.5, float("nan"), "0.5000"),
        (1.0, 0.0, "1"),
        (123.4, 56.7, "123 ± 57"),
        (0.0, 0.01, "0.000 ± 0.010"),
        (0.0512, 0.3, "0.0512 ± 0.3000"),
    ],
)
def test_with_interval(mean: float, half: float, text: str) -> None:
    assert with_interval(mean, half) == text


def test_signed() -> None:
    assert [signed(text) for text in ("-0.1", "0.1", "0", "\u2013")] == ["\u22120.1", "+0.1", "0", "\u2013"]
