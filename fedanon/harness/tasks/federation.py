"""A federated run on the local engine: scores per round, and what the nodes' releases lose and risk."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from statistics import fmean, pstdev
from typing import Any, ClassVar

from fedanon.errors import ConfigError
from fedanon.federated.sources import data_of, whole_table
from fedanon.fields import listed, parameter, same_field
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import (
    CellResult,
    MethodTask,
    majority_share,
    stored_component,
    table_hash,
)
from fedanon.learning.settings import ATTACK, RunSettings
from fedanon.learning.strategies import STRATEGIES
from fedanon.models import MODELS

#: of the last rounds, a mean is reported beside the final value: bagging over few nodes swings from round to round
LAST = 20
#: what is reported of joint anonymization
AGREED = ("classes", "smallest_class_at_least", "queries", "bytes_down", "bytes_up", "epsilon_spent")


@TASKS.register("federation")
@dataclass(frozen=True, kw_only=True)
class FederationTask(MethodTask, RunSettings):
    """Nodes anonymize and train, and the server combines their updates, for some rounds.

    Every setting of a run is an axis.
    """

    takes_joint: ClassVar[bool] = True
    optional_groups: ClassVar[tuple[str, ...]] = (ATTACK,)

    evaluate_every: int = same_field(RunSettings, "evaluate_every", default=5)

    holdout: str = parameter("", help="a data set no node has, scored once at the end")
    subgroups: str = parameter("", help="categorical columns by whose values the model is scored too", optional=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.run_settings()  # settings that do not go together are reported before anything is run

    def run(self) -> CellResult:
        """Final scores, means of the last rounds, curves and metrics of the releases."""
        from fedanon.federated.simulation import simulate

        logging.getLogger("fedanon").setLevel(logging.ERROR)
        simulation = simulate(self.run_settings(), subgroups=listed(self.subgroups))
        result = simulation.to_dict()
        curves = _curves(result.pop("rounds"))
        reported = {name: value for name, value in result.items() if name not in ("seconds", "linkage")}
        metrics = {name: float(value) for name, value in reported.items() if _is_number(value)}
        last = {name: _last(curve, self.rounds) for name, curve in curves.items()}
        metrics |= {f"{name}_last{LAST}": fmean(values) for name, values in last.items()}
        if self.protocol == "as_published":
            # where the published curves begin, and how much they swing
            metrics |= {f"{name}_first": curve[min(curve)] for name, curve in curves.items()}
            metrics |= {f"{name}_swing": pstdev(values) for name, values in last.items()}
        agreed = result.get("joint", {})
        metrics |= {name: float(agreed[name]) for name in AGREED if name in agreed}
        metrics |= _details(result)
        if simulation.outcome_kind != "regression":
            metrics["majority_share"] = majority_share(data_of(self))
        if self.holdout:
            metrics |= self._holdout_scores(simulation.outcome.parameters)
        return CellResult(metrics, curves)

    def data_hashes(self) -> dict[str, str]:
        """Of the nodes' data and the holdout."""
        return super().data_hashes() | ({self.holdout: table_hash(self.holdout)} if self.holdout else {})

    def run_settings(self) -> RunSettings:
        """The settings of the run, k among those of its method."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(RunSettings)}
        return RunSettings(**{**values, "method_settings": self.parameters()})

    def stored(self) -> dict[str, Any]:
        """The fields as stored results know them, model and strategy by their oldest names."""
        model, model_settings = stored_component(MODELS, self.model, self.model_settings)
        strategy, strategy_settings = stored_component(STRATEGIES, self.strategy, self.strategy_settings)
        return super().stored() | {
            "model": model,
            "model_settings": model_settings,
            "strategy": strategy,
            "strategy_settings": strategy_settings,
        }

    def _holdout_scores(self, parameters: Any) -> dict[str, float]:
        from fedanon.learning.strategies import make_model
        from fedanon.models.encoding import Encoding
        from fedanon.models.outcome_scores import all_scores
        from fedanon.models.target import outcome_of, target, unit_of

        if self.protocol == "as_published":
            raise ConfigError("A holdout cannot be scored as published: every node has label codes of its own.")
        table = whole_table(self.holdout)
        features = Encoding.from_schema(table.schema, features=self.features).encode_table(table)
        outcome = outcome_of(table.schema)
        predicted = make_model(self.run_settings(), outcome).predict_proba(parameters, features)
        scores = all_scores(outcome, target(table, table.schema), predicted, unit_of(table.schema))
        names = ("mae", "rmse", "r2") if outcome.kind == "regression" else ("accuracy", "auc", "log_loss")
        return {f"{name}_holdout": scores[name] for name in names}


def _details(result: dict[str, Any]) -> dict[str, float]:
    """The calibration error, and the scores of subgroups under the names of the column and its value."""
    found = {"ece": result["calibration"]["ece"]} if "ece" in result["calibration"] else {}
    for column, scored in result.get("subgroups", {}).items():
        for group in scored["groups"]:
            found |= {f"{n}[{column}={group['group']}]": float(v) for n, v in group.items() if _is_number(v)}
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _curves(rounds: list[dict[str, Any]]) -> dict[str, dict[int, float]]:
    names = sorted(set().union(*rounds) - {"round"})
    return {name: {r["round"]: float(r[name]) for r in rounds if name in r} for name in names}


def _last(curve: dict[int, float], rounds: int) -> list[float]:
    return [value for number, value in curve.items() if number > rounds - LAST]


@TASKS.register("malicious")
@dataclass(frozen=True, kw_only=True)
class MaliciousTask(FederationTask):
    """Some nodes tamper with what they send.

    A task of its own, so that the cells of honest federations keep their names.
    """

    optional_groups: ClassVar[tuple[str, ...]] = ()

    def run(self) -> CellResult:
        """The final scores, the success of a backdoor, rejected updates, and nodes suspected rightly and wrongly."""
        from fedanon.federated.simulation import simulate

        logging.getLogger("fedanon").setLevel(logging.ERROR)
        result = simulate(self.run_settings()).to_dict()
        malicious, suspects = set(result.get("malicious", [])), {entry["node"] for entry in result["suspects"]}
        names = ("auc_pooled", "accuracy", "log_loss", "backdoor_rate")
        metrics = {name: float(result[name]) for name in names if name in result}
        metrics["refused_updates"] = float(len(result["rejected"]))
        metrics["suspects_right"] = float(len(suspects & malicious))
        metrics["suspects_wrong"] = float(len(suspects - malicious))
        return CellResult(metrics)


TASKS.alias("hostile", "malicious")
