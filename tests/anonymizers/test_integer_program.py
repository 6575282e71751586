"""Integer programs: the answer is counted again, and standard output stays clean."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from fedanon.anonymizers.integer_program import _printing_to_stderr, choose_classes

scipy_optimize = pytest.importorskip("scipy.optimize")

#: three records; the classes {0, 1}, {1, 2}, {2} and {0}
COVER = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0]])
COSTS = np.array([5.0, 1.0, 2.0, 3.0])


def choose(costs, **limits):
    once = scipy_optimize.LinearConstraint(COVER, 1, 1)
    return choose_classes(costs, [once], most=1, gap=0.0, **{"seconds": None, "nodes": 100} | limits)


def test_the_cheapest_classes_hold_every_record_once():
    found = choose(COSTS)
    assert found.times.tolist() == [0, 1, 0, 1]
    assert found.nodes < 100
    assert choose(COSTS, seconds=10.0).times.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("wrong", [[0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 2.0, -1.0, 1.0]])
def test_a_choice_that_leaves_a_record_out_or_holds_it_twice_is_none(monkeypatch, wrong):
    right = scipy_optimize.milp

    def faulty(*arguments, **named):
        solved = right(*arguments, **named)
        solved.x = np.array(wrong)
        return solved

    monkeypatch.setattr(scipy_optimize, "milp", faulty)
    assert choose(COSTS).times is None


def test_no_choice_is_none():
    assert (
        choose_classes(
            COSTS[:1], [scipy_optimize.LinearConstraint(COVER[:, :1], 1, 1)], most=1, gap=0.0, seconds=None, nodes=9
        ).times
        is None
    )


def test_what_compiled_code_prints_is_not_on_standard_output(capfd):
    c = ctypes.CDLL(None)
    inside, may_leave = threading.Event(), threading.Event()

    def stay():
        with _printing_to_stderr():
            inside.set()
            may_leave.wait(10)

    other = threading.Thread(target=stay)
    with _printing_to_stderr():
        other.start()
        inside.wait(10)
        c.puts(b"of the solver")
    c.puts(b"while another solves")
    c.fflush(None)
    may_leave.set()
    other.join()
    c.puts(b"an answer")
    c.fflush(None)
    printed = capfd.readouterr()
    assert printed.out == "an answer\n"
    assert printed.err == "of the solver\nwhile another solves\n"
