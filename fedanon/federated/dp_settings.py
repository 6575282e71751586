"""Settings of differentially private training: whom it protects from whom, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedanon import parameters
from fedanon.errors import ConfigError
from fedanon.parameters import parameter
from fedanon.privacy.noise import Randomness

if TYPE_CHECKING:
    from fedanon.federated.settings import RunSettings

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
        parameters.check(self)
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
