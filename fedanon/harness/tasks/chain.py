"""A chain of disclosure control steps on one table: risk by the keys, loss of numbers and of categories."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedanon.errors import ConfigError
from fedanon.federated.sources import data_of, whole_table
from fedanon.fields import listed, parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, Task
from fedanon.metrics import METRICS
from fedanon.sdc.measures import KEY_METRICS
from fedanon.sdc.methods.step import Step, parse_step
from fedanon.sdc.problem import SdcProblem

#: between the steps of a chain
THEN = " > "


@TASKS.register("chain")
@dataclass(frozen=True, kw_only=True)
class ChainTask(Task):
    """Metrics of a chain of steps; those that do not apply are omitted."""

    chain: str = parameter("", help="steps as `fedanon sdc apply --step` takes them, separated by ' > '; none if empty")
    keys: str = parameter("", help="key columns, separated by commas; the quasi-identifiers if empty")
    numbers: str = parameter("", help="numeric columns to mask, separated by commas")
    categories: str = parameter("", help="categorical columns to randomize, separated by commas")
    metrics: str = parameter(",".join(KEY_METRICS), help="metrics, separated by commas", joined=True)
    profile: bool = parameter(
        False, help="also the distribution of SUDA and l-diversity, and what each key contributes"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in listed(self.metrics):
            METRICS[name]
        for step in self._steps():
            step.anonymizer()

    def _steps(self) -> tuple[Step, ...]:
        return tuple(parse_step(text) for text in self.chain.split(THEN)) if self.chain.strip() else ()

    def run(self) -> CellResult:
        """Run the chain and measure what it published."""
        keys, numbers, categories = (tuple(listed(names)) for names in (self.keys, self.numbers, self.categories))
        table = whole_table(data_of(self))
        problem = SdcProblem(table, keys, numbers, categories, seed=self.seed, steps=self._steps())
        measured = problem.measures.measure(listed(self.metrics))
        found = {name: pair.modified for name, pair in measured.items()}
        if self.profile:
            found |= _profile(problem)
        for one in problem.measures.randomized():
            found |= {f"changed of {one['column']}": one["changed"], f"UT1 of {one['column']}": one["ut1"]}
        for pair in problem.measures.contingencies():
            if pair["columns"][0] != pair["columns"][1]:
                found[f"UT1 of {' and '.join(pair['columns'])}"] = pair["ut1"]
        if not found:
            raise ConfigError("The chain has nothing to measure: name metrics.")
        return CellResult({name: float(value) for name, value in found.items() if not math.isnan(value)})


def _profile(problem: SdcProblem) -> dict[str, float]:
    """Return the numbers of a risk profile that are no metrics of their own."""
    profile = problem.profile()
    found = {f"contribution of {entry['key']}": entry["contribution"] for entry in profile["key_contributions"]}
    intervals = profile["suda"]["dis_intervals"]
    found |= {"records with DIS-SUDA 0": intervals[0], "records with DIS-SUDA up to 0.1": intervals[1]}
    found["records with DIS-SUDA above 0.1"] = sum(intervals[2:])
    for entry in profile["diversity"]:
        found[f"mean distinct l of {entry['column']}"] = entry["distinct_mean"]
        found[f"mean distinct l of {entry['column']} as sdcMicro"] = entry["distinct_mean_sdcmicro"]
    return found
