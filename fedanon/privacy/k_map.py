"""k-map: every published record could be that of at least k people of the population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.data.groups import Groups
from fedanon.parameters import parameter
from fedanon.privacy import MODELS
from fedanon.privacy.base import CellsOf, Judge, Mask, Rows
from fedanon.privacy.population import Population, PopulationModel


@MODELS.register("k_map")
@dataclass(frozen=True, kw_only=True)
class KMap(PopulationModel):
    """Every published record matches at least ``k`` people of the population (Sweeney 2001).

    Cells may overlap: a person counts in every cell that holds their values, as an attacker who has the population
    would count. Merging only widens cells, so the model is monotone.
    """

    title = "k-map"

    k: int = parameter(help="least number of people of the population a record matches", at_least=1)

    def judge(self, rows: Rows, published: Mask) -> Judge:
        """Read the population once; see :class:`PrivacyModel`."""
        from fedanon.kernels.covering import points_in_cells

        people = Population.read(self.population, rows.schema)

        def fine(_: Groups, cells: CellsOf) -> Mask:
            return np.asarray(points_in_cells(people.points, *people.bounds(cells())) >= self.k)

        return Judge(fine)

    def describe(self) -> str:
        """One clause."""
        return f"quasi-identifiers that match at least {self.k} people of the population"

    def __str__(self) -> str:
        return f"{self.k}-map"
