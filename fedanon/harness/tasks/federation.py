"""A federated run on the local engine: scores per round, and what the clients' releases lost and risk."""

from __future__ import annotations

import dataclasses
import json
import logging
from dataclasses import dataclass
from typing import Any, Literal

from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import MethodTask, Outcome, majority_share, table_hash, whole_table

#: of the last rounds, a mean is reported beside the final value: bagging over few clients swings from round to round
LAST = 20
#: what is reported of joint anonymization
AGREED = ("classes", "smallest_class_at_least", "queries", "bytes_down", "bytes_up", "epsilon_spent")


@TASKS.register("federation")
@dataclass(frozen=True, kw_only=True)
class FederationTask(MethodTask):
    """Clients anonymise, train and are averaged for some rounds."""

    partition: str = parameter("iid", help="iid, dirichlet:ALPHA[:COLUMN], quantity:ALPHA, by:COLUMN or stored")
    clients: int = parameter(10, help="number of clients", at_least=1)
    model: str = parameter("lr", help="model")
    model_settings: str = parameter("{}", help="parameters of the model, as JSON")
    strategy: str = parameter("fedavg", help="how the server combines updates")
    strategy_settings: str = parameter("{}", help="parameters of the strategy, as JSON")
    dp_settings: str = parameter("{}", help="differentially private training, as JSON")
    rounds: int = parameter(100, help="rounds of training", at_least=1)
    clients_per_round: int = parameter(0, help="clients that train in a round; 0 means all", at_least=0)
    evaluate_every: int = parameter(5, help="rounds between evaluations", at_least=1)
    features: Literal["quasi_identifiers", "all"] = parameter("quasi_identifiers", help="columns a model sees")
    protocol: Literal["corrected", "as_published"] = parameter("corrected", help="fair, or as the thesis's code")
    holdout: str = parameter("", help="a data set no client has, scored once at the end")

    @classmethod
    def component(cls, method: str) -> type[Any]:
        """The method by name: one for a single table, or a joint one."""
        from fedanon.joint import JOINT_METHODS

        return JOINT_METHODS[method] if method in JOINT_METHODS else super().component(method)

    def run(self) -> Outcome:
        """Final scores, means of the last rounds, curves and measures of the releases."""
        from fedanon.federated.simulation import simulate

        logging.getLogger("fedanon").setLevel(logging.ERROR)
        simulation = simulate(self._run_settings())
        result = simulation.to_dict()
        curves = _curves(result.pop("rounds"))
        told = {name: value for name, value in result.items() if name not in ("seconds", "linkage")}
        measures = {name: float(value) for name, value in told.items() if _is_number(value)}
        measures |= {f"{name}_last{LAST}": _mean_of_last(curve, self.rounds) for name, curve in curves.items()}
        agreed = result.get("joint", {})
        measures |= {name: float(agreed[name]) for name in AGREED if name in agreed}
        measures["majority_share"] = majority_share(self.dataset)
        if self.holdout:
            measures |= self._holdout_scores(simulation.outcome.parameters)
        return Outcome(measures, curves)

    def data_hashes(self) -> dict[str, str]:
        """The clients' data and the holdout."""
        return super().data_hashes() | ({self.holdout: table_hash(self.holdout)} if self.holdout else {})

    def _run_settings(self) -> Any:
        from fedanon.learning.settings import RunSettings

        same = "dataset partition method model strategy rounds evaluate_every features protocol seed"
        values = {name: getattr(self, name) for name in same.split()}
        nested = ("model_settings", "strategy_settings", "dp_settings")
        values |= {name: json.loads(getattr(self, name)) for name in nested}
        values |= {"nodes": self.clients, "nodes_per_round": self.clients_per_round}
        return RunSettings(**values, method_settings=self.method_settings())

    def _holdout_scores(self, parameters: Any) -> dict[str, float]:
        from fedanon.learning.strategies import make_model
        from fedanon.models.encoding import Encoding
        from fedanon.models.scores import classification_scores
        from fedanon.models.target import target

        if self.protocol == "as_published":
            raise ConfigError("A holdout cannot be scored as published: every client has label codes of its own.")
        table = whole_table(self.holdout)
        features = Encoding.from_schema(table.schema, features=self.features).encode_table(table)
        probability = make_model(self._run_settings()).predict_proba(parameters, features)
        scores = classification_scores(target(table, table.schema), probability >= 0.5, probability)
        return {f"{name}_holdout": scores[name] for name in ("accuracy", "auc", "log_loss")}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _curves(rounds: list[dict[str, Any]]) -> dict[str, dict[int, float]]:
    names = sorted(set().union(*rounds) - {"round"})
    return {name: {r["round"]: float(r[name]) for r in rounds if name in r} for name in names}


def _mean_of_last(curve: dict[int, float], rounds: int) -> float:
    last = [value for number, value in curve.items() if number > rounds - LAST]
    return sum(last) / len(last)


# ---- A federated run with hostile clients --------------------------------------------------------


@TASKS.register("hostile")
@dataclass(frozen=True, kw_only=True)
class HostileTask(FederationTask):
    """Some clients tamper with what they send.

    A task of its own, so that the cells of honest federations keep their names.
    """

    hostile: int = parameter(0, help="number of hostile clients", at_least=0)
    tampering: str = parameter("sign_flip", help="what they do")
    tampering_settings: str = parameter("{}", help="parameters of the tampering, as JSON")
    max_move: float = parameter(5.0, help="a step this many times the round's median is left out; 0: none", at_least=0)
    exclude_suspects: bool = parameter(False, help="leave out clients whose updates are unlike the others'")

    def run(self) -> Outcome:
        """The final scores, the success of a backdoor, updates refused, and suspects named rightly and wrongly."""
        from fedanon.federated.simulation import simulate

        logging.getLogger("fedanon").setLevel(logging.ERROR)
        result = simulate(self._run_settings()).to_dict()
        hostile, suspects = set(result.get("malicious", [])), {entry["node"] for entry in result["suspects"]}
        names = ("auc_pooled", "accuracy", "log_loss", "backdoor_rate")
        measures = {name: float(result[name]) for name in names if name in result}
        measures["refused_updates"] = float(len(result["rejected"]))
        measures["suspects_right"] = float(len(suspects & hostile))
        measures["suspects_wrong"] = float(len(suspects - hostile))
        return Outcome(measures)

    def _run_settings(self) -> Any:
        return dataclasses.replace(
            super()._run_settings(),
            malicious=self.hostile,
            malicious_attack=self.tampering,
            malicious_settings=json.loads(self.tampering_settings),
            max_move=self.max_move,
            exclude_suspects=self.exclude_suspects,
        )
