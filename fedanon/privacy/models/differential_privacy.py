r"""Differential privacy of a release: a property of the mechanism, of which the output can tell only some things.

A mechanism M is :math:`(\varepsilon, \delta)`-differentially private if for all tables D and D' that differ in one unit
and all sets S of outputs :math:`P(M(D) \in S) \le e^\varepsilon P(M(D') \in S) + \delta` (Dwork et al. 2006). No look
at one output can prove that. What can be checked on a release, and is: that the noise its manifest names suffices for
the groups and ranges it has, that nothing is published beside the noisy numbers, that the order of its rows says
nothing, and that no number was left without noise. What cannot: that the noise was drawn as named, and that the groups
came from an order of the domain.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from fedanon.data.cells import Numbers
from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric, Unit
from fedanon.data.spans import points
from fedanon.data.table import Table
from fedanon.errors import PrivacyViolationError
from fedanon.fields import check_fields, parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.accounting.accountant import gaussian_epsilon
from fedanon.privacy.base import View

Distribution = Literal["laplace", "gaussian"]
#: room for rounding in the recomputation, and for nothing else
ROUNDING = 1e-9
#: a number this close to the mean, in units of the range or of the noise, has got none: means are rounded to 2^-32
BARE_RANGE, BARE_SCALE = 2e-10, 1e-8


@dataclass(frozen=True)
class Sensitivity:
    """By how much the means of all groups change together if one record is replaced, in units of the ranges."""

    l1: float
    l2: float

    @classmethod
    def from_groups(cls, groups: Groups, columns: int) -> Sensitivity:
        r"""Of the means of groups that are cut from a total order of the domain.

        A replaced record leaves one group and enters another; each group between them passes one record on. So every
        mean changes by at most range / size, and all m columns of all groups together by

        .. math:: L_1 \le m \sum_g \frac{1}{n_g}, \qquad L_2 \le \sqrt{m \sum_g \frac{1}{n_g^2}}

        (Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2014). Where every record stands alone, in the table's order,
        nothing is passed on and one record of one group changes.
        """
        if (groups.sizes == 1).all() and (groups.labels == np.arange(groups.count)).all():
            return cls(float(columns), math.sqrt(columns))
        share = 1 / groups.sizes
        return cls(columns * float(share.sum()), math.sqrt(columns * float((share**2).sum())))


@PRIVACY_MODELS.register("differential_privacy")
@dataclass(frozen=True, kw_only=True)
class DifferentialPrivacy:
    """Noise on group means that keeps a budget.

    Parameters
    ----------
    epsilon, delta : the budget of the whole release.
    noise : the distribution of the noise.
    scale : of the Laplace noise, or the deviation of the normal one, in units of a column's declared range.
    """

    epsilon: float = parameter(help="privacy budget", at_least=1e-9)
    delta: float = parameter(0.0, help="chance of a larger loss", at_least=0, at_most=0.5)
    noise: Distribution = parameter(help="distribution of the noise")
    scale: float = parameter(help="of the noise, in units of the declared ranges", at_least=0)

    def __post_init__(self) -> None:
        check_fields(self)

    def spent(self, sensitivity: Sensitivity) -> float:
        """The epsilon that noise of this scale keeps at delta."""
        if self.scale == 0:
            return math.inf
        if self.noise == "laplace":
            return sensitivity.l1 / self.scale
        return gaussian_epsilon(sensitivity.l2 / self.scale, self.delta) if self.delta else math.inf

    def check(self, view: View, table: Table) -> None:
        """Raise unless the noise suffices and nothing else is published."""
        spent = self.spent(Sensitivity.from_groups(view.groups, len(view.cells)))
        if spent > self.epsilon * (1 + ROUNDING):
            raise PrivacyViolationError(
                f"The release claims epsilon {self.epsilon:g}, but its noise keeps {spent:.6g} only."
            )
        shown = [name for name in view.passthrough.columns if view.passthrough[name].notna().any()]
        if shown:
            raise PrivacyViolationError(f"The release publishes columns without noise: {', '.join(shown)}.")
        if not view.in_group_order or view.suppressed.any():
            raise PrivacyViolationError("The order or the number of the published rows reveals single records.")
        self._refuse_bare(view, table)

    def _refuse_bare(self, view: View, table: Table) -> None:
        """Refuse means without noise. A mean at an end of its range may be met by clamping, others by no noise."""
        means = view.groups.mean(points(table))
        close = min(BARE_RANGE, BARE_SCALE * self.scale)
        for i, column in enumerate(table.columns):
            cells = view.cells[column.name]
            if not isinstance(cells, Numbers) or not isinstance(column.attribute, Numeric):
                raise PrivacyViolationError(f"The column {column.name!r} is not published as numbers with noise.")
            low, high = column.attribute.low, column.attribute.high
            if ((cells.values < low) | (cells.values > high)).any():
                raise PrivacyViolationError(f"The column {column.name!r} is published beyond its declared range.")
            inside = (means[:, i] > low) & (means[:, i] < high)
            bare = int((inside & (np.abs(cells.values - means[:, i]) <= close * column.attribute.width)).sum())
            if bare > len(cells) / 1000:
                raise PrivacyViolationError(f"The column {column.name!r} has {bare} group means without noise.")

    def describe(self, unit: Unit) -> str:
        """One sentence for people."""
        chance = f" but for a chance of {self.delta:g}" if self.delta else ""
        return (
            f"whatever is published changes in probability by a factor of at most e^{self.epsilon:g}{chance} if one "
            "record is replaced by any other (differential privacy)"
        )

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        unit = "one record replaced by any other; the number of records is public"
        return {"model": "differential privacy", "unit": unit, **asdict(self)}
