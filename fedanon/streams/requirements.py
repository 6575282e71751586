"""What a stream keeps beyond k: models of a sensitive column, counted over what was published in a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.data.schema import Attribute
    from fedanon.privacy.sensitive import SensitiveModel
    from fedanon.streams.diversity import PublishedValues


def sensitive_models(require: str, k: int) -> tuple[SensitiveModel, ...]:
    """The models that are required beyond k, each about a sensitive column.

    Raises
    ------
    ConfigError
        If one is neither of a sensitive column nor k itself.
    """
    if not require.strip():
        return ()  # a gateway that keeps k alone has no use for pandas, which the models need
    from fedanon.privacy.requirements import parse_requirements
    from fedanon.privacy.sensitive import SensitiveModel

    found: list[SensitiveModel] = []
    for model in parse_requirements(require):
        if isinstance(model, SensitiveModel):
            found.append(model)
        elif model.min_people != k:
            raise ConfigError(f"A stream keeps k and models of a sensitive column; {model} is neither.")
    return tuple(found)


def published_values(
    models: Sequence[SensitiveModel], attributes: Mapping[str, Attribute] | None = None
) -> PublishedValues | None:
    """Where the values published in every class are counted; None if nothing is required of them."""
    if not models:
        return None
    from fedanon.streams.diversity import PublishedValues

    return PublishedValues(models, attributes)
