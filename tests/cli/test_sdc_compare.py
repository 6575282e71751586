"""`fedanon sdc compare` and `fedanon sdc recommend` end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Outcome, Run


@pytest.fixture
def compare(run: Run, tmp_path: Path) -> Run:
    """On 150 incomes and spendings, some of them zero."""
    rng = np.random.default_rng(5)
    income = np.where(rng.random(150) < 0.1, 0.0, rng.lognormal(8, 0.8, 150)).round(2)
    path = tmp_path / "money.csv"
    pd.DataFrame({"income": income, "spending": (0.5 * income + rng.gamma(2, 200, 150)).round(2)}).to_csv(
        path, index=False
    )

    def call(*arguments: str | Path) -> Outcome:
        return run("sdc", arguments[0], path, "--qi", "income,spending", *arguments[1:])

    return call


def test_a_sweep_of_one_method(compare: Run, tmp_path: Path) -> None:
    out, plot = tmp_path / "rows.csv", tmp_path / "rows.svg"
    done = compare(
        "compare", "--method", "additive_noise", "--sweep", "c=0.01,0.1,1", "-o", out, "--plot", plot, "--json"
    )
    assert done.code == 0, done.err
    rows = done.json["rows"]
    assert [row["parameters"] for row in rows] == ["c=0.01", "c=0.1", "c=1"]
    assert rows[0]["il2"] < rows[1]["il2"] < rows[2]["il2"]
    assert rows[0]["dld"] > rows[1]["dld"] > rows[2]["dld"]
    assert np.allclose(pd.read_csv(out)["il2"], [row["il2"] for row in rows])
    assert plot.read_bytes().startswith(b"<?xml")


def test_the_plot_tells_variants_by_their_dashes(compare: Run, tmp_path: Path) -> None:
    plot = tmp_path / "rows.svg"
    arguments = ("compare", "--method", "kim_noise", "--sweep", "c=0.1,1", "--reverse-map", "--plot", plot)
    assert compare(*arguments).code == 0
    drawn = plot.read_text()
    assert all(text in drawn for text in ("plain", "reverse mapped", "Pareto front"))
    assert "restricted" not in drawn, "it was not run"


def test_variants(compare: Run) -> None:
    arguments = ("compare", "--method", "kim_noise", "--method", "mdav", "--sweep", "mdav:k=3", "--sweep", "c=0.1")
    rows = compare(*arguments, "--reverse-map", "--restricted", "--json").json["rows"]
    variants = {name: [row["variant"] for row in rows if row["method"] == name] for name in ("kim_noise", "mdav")}
    assert variants == {
        "kim_noise": ["plain", "reverse mapped", "restricted", "restricted, reverse mapped"],
        "mdav": ["plain", "reverse mapped"],
    }
    mapped = [row for row in rows if "reverse" in row["variant"]]
    assert all(row["gini_difference"] == pytest.approx(0, abs=1e-9) for row in mapped)


def test_metrics_are_chosen_and_the_former_name_of_the_option_is_accepted(compare: Run) -> None:
    chosen = compare("compare", "--method", "gadp", "--metrics", "mse", "--json").json["rows"]
    assert list(chosen[0]) == ["method", "variant", "parameters", "dld", "il2", "mse", "seconds"]
    with pytest.warns(FutureWarning, match="now called '--metrics'"):
        former = compare("compare", "--method", "gadp", "--measures", "mse", "--json").json["rows"]
    assert former[0]["mse"] == chosen[0]["mse"]


def test_what_cannot_run_is_told_and_the_others_go_on(compare: Run) -> None:
    done = compare("compare", "--method", "gadp", "--method", "rounding", "--sweep", "rounding:base=1e9")
    assert done.code == 0, done.err
    assert "Not run: rounding" in done.out
    assert "gadp" in done.out


def test_recommendation_from_a_file_is_that_of_a_run(compare: Run, run: Run, tmp_path: Path) -> None:
    methods = ("--method", "additive_noise", "--method", "mdav", "--method", "rank_swapping")
    plot = tmp_path / "front.png"
    direct = compare("recommend", *methods, "--plot", plot, "--json").json
    for ending in ("csv", "json"):
        out = tmp_path / f"rows.{ending}"
        assert compare("compare", *methods, "-o", out).code == 0
        read = run("sdc", "recommend", "--from", out, "--json").json
        assert [(e["goal"], e["method"], e["parameters"]) for e in read["recommended"]] == [
            (e["goal"], e["method"], e["parameters"]) for e in direct["recommended"]
        ]
        assert read["compared"] == direct["compared"] == 15
    assert plot.read_bytes().startswith(b"\x89PNG")
    goals = {entry["goal"]: entry for entry in direct["recommended"]}
    assert list(goals) == ["least loss", "best compromise", "least risk"]
    assert goals["least loss"]["dld"] <= 0.5
    assert goals["least risk"]["dld"] == min(entry["dld"] for entry in direct["front"])
    on_front = [(entry["method"], entry["parameters"]) for entry in direct["front"]]
    assert all((entry["method"], entry["parameters"]) in on_front for entry in goals.values())


def test_the_reasons_are_written_out(compare: Run) -> None:
    done = compare("recommend", "--method", "additive_noise", "--limit", "0.000001")
    assert done.code == 0, done.err
    assert "above the limit" in done.out
    done = compare("recommend", "--method", "additive_noise", "--risk", "interval_risk", "--loss", "mae")
    assert "best compromise: additive_noise" in done.out
    assert "closest to the least risk and the least loss at once" in done.out


def test_complete_and_sample(run: Run) -> None:
    arguments = (
        "sdc",
        "compare",
        "--dataset",
        "nhanes",
        "--columns",
        "income_ratio,bmi",
        "--sweep",
        "additive_noise:c=0.1",
    )
    assert run(*arguments, "--complete", "--sample", "200", "--json").json["n"] == 200
    whole = run(*arguments, "--json").json
    assert len(whole["rows"]) == 1, "missing numbers are taken, and stay missing"
    assert whole["n"] > run(*arguments, "--complete", "--json").json["n"]


def test_categories_are_compared_apart(run: Run) -> None:
    adult = ("--dataset", "adult", "--sample", "400", "--json")
    done = run("sdc", "compare", *adult, "--columns", "sex,race,education")
    assert done.code == 0, done.err
    rows = {(row["method"], row["parameters"]): row for row in done.json["rows"]}
    assert rows["pram", "keep=0.5"]["categories_changed"] > rows["pram", "keep=0.95"]["categories_changed"]
    suppressed = rows["local_suppression", "k=3, matching=sdcmicro"]
    assert suppressed["violations_3_sdcmicro"] == 0 < suppressed["new_missing"]
    assert rows["local_suppression", "k=3, matching=equal"]["violations_3"] == 0
    assert "Numbers and categories are compared apart" in run("sdc", "compare", *adult, "--columns", "sex,age").err


def test_models_are_given_categories(run: Run) -> None:
    adult = ("--dataset", "adult", "--sample", "500", "--columns", "age,capital-gain", "--method", "ipso", "--json")
    alone, given = (run("sdc", "compare", *adult, *more).json for more in ((), ("--given", "education,sex")))
    assert given["rows"][0]["parameters"] == "given=education,sex"
    assert given["rows"][0]["dld"] != alone["rows"][0]["dld"]


def test_a_recommendation_is_no_promise(compare: Run) -> None:
    done = compare("recommend", "--method", "resampling", "--method", "mdav", "--method", "additive_noise", "--json")
    for entry in done.json["recommended"]:
        assert entry["dld"] <= 0.1, "every other record found again is no recommendation"
        assert (entry["promise"] is not None) == (entry["method"] == "mdav")
    assert "A measured risk is no promise" in compare("recommend", "--method", "additive_noise").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "--method", "aditive_noise"], "Did you mean 'additive_noise'"),
        (["compare", "--sweep", "c=0.1"], "--sweep names no method"),
        (["compare", "--method", "gadp", "--sweep", "c=0.1"], "belongs to none of: gadp"),
        (["compare", "--method", "additive_noise", "--sweep", "c"], "--sweep takes"),
        (["compare", "--method", "additive_noise", "--sweep", "c=-1"], "'c' parameter"),
        (["compare", "--risk", "truthfulness"], "Lower is not better"),
        (["compare", "--loss", "il3"], "il3"),
        (["compare", "-o", "rows.xlsx"], "must end in .csv or .json"),
        (["compare", "--columns", "incomes"], "no column 'incomes'"),
        (["recommend", "--from", "nowhere.csv"], "not both"),
    ],
)
def test_bad_input_is_one_line(compare: Run, arguments: list[str], message: str) -> None:
    done = compare(*arguments)
    assert done.code == (3 if "no column" in message else 2)
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_file_that_is_no_comparison(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    assert "does not exist" in run("sdc", "recommend", "--from", path).err
    path.write_text("{")
    assert "cannot be read" in run("sdc", "recommend", "--from", path).err
    path.write_text(json.dumps({"rows": [{"a": 1}]}))
    assert "not a comparison" in run("sdc", "recommend", "--from", path).err
    path.write_text(json.dumps({"rows": [{"method": "m", "variant": "plain", "parameters": "", "dld": 0.1}]}))
    assert "has no il2. It has: dld" in run("sdc", "recommend", "--from", path).err
