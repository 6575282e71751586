"""delta-presence: the release hardly tells who of the population is in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.data.groups import Groups
from fedanon.errors import ConfigError
from fedanon.parameters import parameter
from fedanon.privacy import MODELS
from fedanon.privacy.base import ROUNDING, CellsOf, Judge, Mask, Rows
from fedanon.privacy.population import Population, PopulationModel


@MODELS.register("presence")
@dataclass(frozen=True, kw_only=True)
class DeltaPresence(PopulationModel):
    r"""Any person of the population is in the release with a probability of ``low`` to ``high`` (Nergiz et al. 2007).

    .. math:: \delta_{low} \le P(x \in release) \le \delta_{high}, \qquad P \approx n_g / N_g

    for a person x who matches class g, with n people, that matches N of the population. Where cells overlap, the sum
    over the classes is held below ``high`` and the largest of them above ``low``, which is safe on both sides. With
    ``low`` above 0 everyone of the population must match a class. Merging classes can break the model.
    """

    title = "delta-presence"
    monotone = False

    high: float = parameter(help="largest probability", at_least=0, at_most=1)
    low: float = parameter(0.0, help="least probability", at_least=0, at_most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ConfigError(f"DeltaPresence has low={self.low:g} above high={self.high:g}.")

    def judge(self, rows: Rows, published: Mask) -> Judge:
        """Read the population once; see :class:`PrivacyModel`."""
        from fedanon.kernels.covering import largest_in_cells, points_in_cells, shares_of_points

        population = Population.read(self.population, rows.schema)
        points = population.points

        def fine(groups: Groups, cells: CellsOf) -> Mask:
            bounds = population.bounds(cells())
            share = rows.people(groups) / np.maximum(points_in_cells(points, *bounds), 1)
            total, largest = shares_of_points(points, *bounds, share)
            # a person whom no class matches, or too few of the released, can be helped by wider cells anywhere
            if (largest < self.low - ROUNDING).any():
                return np.zeros(groups.count, dtype=bool)
            high = np.maximum(share, largest_in_cells(points, total, *bounds))
            return np.asarray(high <= self.high + ROUNDING)

        return Judge(fine)

    def describe(self) -> str:
        """One clause."""
        return f"people who are in the release with a probability of {self.low:g} to {self.high:g}"

    def __str__(self) -> str:
        return f"({self.low:g}, {self.high:g})-presence"
