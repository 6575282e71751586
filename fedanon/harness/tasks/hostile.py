"""A federated run with hostile clients: what is left of the model, and whether the server names them."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from typing import Any

from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import Outcome
from fedanon.harness.tasks.federation import FederationTask
from fedanon.parameters import parameter


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
        hostile, suspects = set(result.get("hostile", [])), {entry["client"] for entry in result["suspects"]}
        names = ("auc_pooled", "accuracy", "log_loss", "backdoor_rate")
        measures = {name: float(result[name]) for name in names if name in result}
        measures["refused_updates"] = float(len(result["rejected"]))
        measures["suspects_right"] = float(len(suspects & hostile))
        measures["suspects_wrong"] = float(len(suspects - hostile))
        return Outcome(measures)

    def _run_settings(self) -> Any:
        more = ("hostile", "tampering", "tampering_settings", "max_move", "exclude_suspects")
        return dataclasses.replace(super()._run_settings(), **{name: getattr(self, name) for name in more})
