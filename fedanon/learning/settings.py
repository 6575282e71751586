"""Settings of a federated run: scalars only, so that they travel as a Flower run config."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_type_hints

from fedanon.errors import ConfigError
from fedanon.fields import build, check_fields, parameter
from fedanon.privacy.accounting.noise import Randomness


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What the server and every node of a run agree on.

    Nested settings (of the method, the model, the strategy) are JSON texts.
    """

    dataset: str = parameter("adult", help="data set by name, where nodes do not bring their own table")
    partition: str = parameter("iid", help="iid, dirichlet:ALPHA[:COLUMN], quantity:ALPHA or by:COLUMN")
    clients: int = parameter(10, help="number of clients of a simulation", at_least=1)
    method: str = parameter("identity", help="anonymizer every node applies to its training rows, or all together")
    method_settings: str = parameter("{}", help="parameters of the method, as JSON")
    model: str = parameter("lr", help="model")
    model_settings: str = parameter("{}", help="parameters of the model, as JSON")
    strategy: str = parameter("fedavg", help="how the server combines updates")
    strategy_settings: str = parameter("{}", help="parameters of the strategy, as JSON")
    rounds: int = parameter(100, help="rounds of training", at_least=1)
    clients_per_round: int = parameter(0, help="clients that train in a round; 0 means all", at_least=0)
    min_replies: float = parameter(
        0.5, help="a round with a smaller share of usable replies fails", at_least=0, at_most=1
    )
    evaluate_every: int = parameter(
        1, help="rounds between evaluations; the last round is always evaluated", at_least=1
    )
    test_share: float = parameter(0.2, help="share of every node's rows kept for testing", at_least=0.01, at_most=0.9)
    features: Literal["quasi_identifiers", "all"] = parameter("quasi_identifiers", help="columns a model sees")
    protocol: Literal["corrected", "as_published"] = parameter(
        "corrected", help="split first and test on raw rows, or what the thesis's code did"
    )
    max_move: float = parameter(
        5.0, help="a step this many times the round's median is left out; 0 leaves none out", at_least=0
    )
    exclude_suspects: bool = parameter(False, help="leave out clients whose updates are unlike the others'")
    hostile: int = parameter(0, help="hostile clients; of a simulation, no deployed node reads it", at_least=0)
    tampering: str = parameter("sign_flip", help="what the hostile clients of a simulation do")
    tampering_settings: str = parameter("{}", help="parameters of the tampering, as JSON")
    dp_settings: str = parameter("{}", help="differentially private training, as JSON: mode, epsilon, delta, clip")
    seed: int = parameter(0, help="seed of everything", at_least=0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.dp is not None:
            self.dp.refuse_unfit(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> RunSettings:
        """Read a Flower run config; names with dashes, foreign keys ignored."""
        hints = get_type_hints(cls)
        known = {entry.name.replace("_", "-"): entry.name for entry in fields(cls)}
        values = {known[key]: value for key, value in config.items() if key in known}
        # TOML and command lines give 1 where 1.0 is meant
        values = {name: float(v) if hints[name] is float else v for name, v in values.items()}
        return cls(**values)

    def to_config(self) -> dict[str, Any]:
        """As a Flower run config."""
        return {name.replace("_", "-"): value for name, value in asdict(self).items()}

    @cached_property
    def dp(self) -> DpSettings | None:
        """The privacy budget of the training, if it has one."""
        chosen = self.nested("dp")
        return build(DpSettings, chosen) if chosen else None

    def nested(self, name: Literal["method", "model", "strategy", "tampering", "dp"]) -> dict[str, Any]:
        """The settings of a component."""
        value: dict[str, Any] = json.loads(getattr(self, f"{name}_settings"))
        return value


# ---- Settings of differentially private training -------------------------------------------------

Mode = Literal["central", "local", "record"]

#: what one unit of privacy is; sizes, and how many clients there are, are public
UNITS: dict[Mode, str] = {
    "central": "one client, present or sending nothing; the server is trusted",
    "local": "all rows of one client, replaced by any others; the server is not trusted",
    "record": "one training record of a client, present or adding nothing; the server is not trusted",
}
COVERS = "the model after every round; not the numbers of rows, the scores of test rows, nor who failed to answer"


@dataclass(frozen=True, kw_only=True)
class DpSettings:
    """The budget of a run and how it is kept."""

    mode: Mode = parameter("record", help="noise by the server, by each client on its update, or on its gradients")
    epsilon: float = parameter(help="privacy budget of the whole run", at_least=1e-3)
    delta: float = parameter(1e-5, help="chance of a larger loss; below one over the number of units", at_least=1e-15)
    clip: float = parameter(2.0, help="largest norm of an update (central, local) or gradient (record)", at_least=1e-9)
    learning_rate: float = parameter(4.0, help="step size of the mode 'record'", at_least=1e-9)
    randomness: Randomness = parameter("secure", help="'seeded' noise is for experiments: it promises nothing")

    def __post_init__(self) -> None:
        check_fields(self)
        if self.delta >= 0.5:
            raise ConfigError(f"The 'delta' parameter of DpSettings must be below 0.5. Got {self.delta!r} instead.")

    def refuse_unfit(self, run: RunSettings) -> None:
        """Raise ConfigError where a promise could not be kept with the other settings of a run."""
        from fedanon.models import MODELS

        if MODELS[run.model].aggregation != "mean":
            raise ConfigError(f"Differential privacy needs a model that is averaged; {run.model!r} is not one.")
        if run.protocol != "corrected":
            raise ConfigError("Differential privacy needs the protocol 'corrected': the other trains on test rows too.")
        if self.mode == "central" and run.strategy != "fedavg":
            raise ConfigError(
                f"The dp mode 'central' needs the strategy 'fedavg': one client can move {run.strategy!r} too far."
            )
        if self.mode == "central" and run.exclude_suspects:
            raise ConfigError("The dp mode 'central' cannot exclude suspects: one client would decide on others.")
        if self.mode == "record" and run.model != "lr":
            raise ConfigError(
                f"The dp mode 'record' clips the gradient of every record; {run.model!r} has none: use lr."
            )
        if self.mode == "record" and run.method != "identity":
            raise ConfigError(
                f"The dp mode 'record' needs the method 'identity': with {run.method!r} one record changes the "
                "published values of others, whose gradients would not be covered."
            )
