"""Findings: numbers come from the results, relations are checked, and nothing but the small language is evaluated."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fedanon.errors import ConfigError
from fedanon.harness.checking import check_experiment
from fedanon.harness.experiment import read_experiment
from fedanon.harness.findings import evaluate_findings, read_finding, read_remark

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
STORED = [path for path in sorted(EXPERIMENTS.glob("*.toml")) if (EXPERIMENTS / "results" / path.stem).is_dir()]


def results() -> pd.DataFrame:
    """Two methods at three k with two seeds; `b` loses less at k = 2 and 3 and more at 9."""
    losses = {("a", 2): 0.2, ("a", 3): 0.3, ("a", 9): 0.4, ("b", 2): 0.1, ("b", 3): 0.25, ("b", 9): 0.5}
    rows = [
        {"grid": "g", "label": label, "k": k, "seed": seed, "cell": f"{label}{k}{seed}", "measure": "ncp"}
        | {"value": loss + 0.01 * (2 * seed - 1)}
        for (label, k), loss in losses.items()
        for seed in (0, 1)
    ]
    raw = [{"grid": "g", "label": "raw", "seed": seed, "cell": f"raw{seed}", "measure": "ncp"} for seed in (0, 1)]
    frame = pd.DataFrame([*rows, *({**row, "value": 0.01 * (2 * row["seed"] - 1)} for row in raw)])  # type: ignore[operator]
    return frame.astype({"k": "Int64"})


def say(text: str, **more: object) -> tuple[str, tuple[str, ...]]:
    [found] = evaluate_findings([read_finding({"text": text, **more})], results(), pd.DataFrame(), "raw")
    return found.text, found.failed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{at('ncp', label='a', k=2):2}", ".20"),
        ("{at('ncp', label='a', k=2):1%}", "20.0 %"),
        ("{lost('ncp', label='b', k=9):1}", "-.5"),
        ("{seeds('ncp', label='a', k=2)} seeds", "2 seeds"),
        ("{count(at('ncp', label='b') < at('ncp', label='a'))}", "2"),
        ("{where(at('ncp', label='b') < at('ncp', label='a'))}", "2 to 3"),
        ("{where(at('ncp', label='a') > 0.25)}", "3, 9"),
        ("{where(at('ncp', label='a') > 1)}", "none"),
        ("{best(at('ncp', k=2))} and {worst(at('ncp', k=2))}", "b and a"),
        ("{listed(at('ncp', label='a'), '1')}", ".2, .3 and .4"),
        ("{max(each('ncp', label='a')):2}", ".41"),
        ("{over(at('ncp'), 'k', 'min'):1}", "?"),
    ],
)
def test_numbers_come_from_the_results(text: str, expected: str) -> None:
    assert say(text)[0] == expected


def test_a_relation_that_does_not_hold_is_named() -> None:
    below = "all(at('ncp', label='b') < at('ncp', label='a'))"
    assert say("b is better.", holds=[below, "1 < 2"]) == ("b is better.", (below,))
    assert say("b is better at k = 2.", holds="at('ncp', label='b', k=2) < at('ncp', label='a', k=2)")[1] == ()


def test_what_cannot_be_computed_does_not_hold() -> None:
    text, failed = say("{at('auc', label='a'):3}", holds="at('ncp', label='z') > 0")
    assert text == "?"
    assert len(failed) == 2


def test_places_must_be_the_same() -> None:
    assert say("Less.", holds="all(at('ncp', label='a', k=[2, 3]) < at('ncp', label='b'))")[1]


def test_places_are_the_same_whatever_type_of_number_names_them() -> None:
    """Results have rows without k, published tables may have none: one column of k may hold gaps, the other not."""
    published = pd.DataFrame({"grid": "g", "label": "b", "k": [2, 3, 9], "measure": "ncp", "published": [0.2] * 3})
    relation = "all(abs(at('ncp', label='b') - published('ncp') - [-0.1, 0.05, 0.3]) < 1e-9)"
    [found] = evaluate_findings([read_finding({"text": "Off.", "holds": relation})], results(), published, "raw")
    assert found.failed == ()


def test_a_place_without_k_is_the_same_in_both_tables() -> None:
    published = pd.DataFrame({"grid": "g", "label": ["b", "b", "b", "raw"], "k": [2, 3, 9, None], "measure": "ncp"})
    published["published"] = 1.0
    relation = "all(at('ncp', label=['b', 'raw']) < published('ncp'))"
    [found] = evaluate_findings([read_finding({"text": "Less.", "holds": relation})], results(), published, "raw")
    assert found.failed == ()


@pytest.mark.parametrize(
    "finding",
    [
        {"text": "It loses .671 of it."},
        {"text": "It loses 41 % of it.", "holds": "1 < 2"},
        {"text": "Nothing is computed."},
        {"text": "{unknown}"},
        {"text": "{shout('ncp')}"},
        {"text": "{at('ncp').to_csv('x')}"},
        {"text": "{().__class__}"},
        {"text": "{[x for x in 'ab']}"},
        {"text": "{count(1) if 1 else 2}"},
        {"text": "{at('ncp'}"},
        {"text": "A sentence.", "hold": "1 < 2"},
        {"let": {"a": "1"}},
    ],
)
def test_anything_else_is_refused_before_it_runs(finding: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        read_finding(finding)


def test_settings_may_stand_in_a_sentence_and_numbers_not_in_a_remark() -> None:
    read_finding({"text": "At t = .2 and k = 10.", "holds": "1 < 2"})
    with pytest.raises(ConfigError, match=r"\.3"):
        read_remark("It costs .3 of the AUC.")


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_stored_results_say_what_the_experiments_state(path: Path) -> None:
    found = check_experiment(read_experiment(path), EXPERIMENTS / "results" / path.stem)
    assert found.holds, [one for one in (*found.findings, *found.published) if not one.holds]
