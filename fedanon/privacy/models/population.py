"""A population table: the people among whom an attacker looks for those of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedanon.data.cells import Cells, Nodes
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.readers import read_frame
from fedanon.data.schema import Categorical, Numeric, Schema, Unit
from fedanon.data.spans import cell_bounds, points
from fedanon.data.table import Table
from fedanon.errors import ConfigError, SchemaError
from fedanon.fields import parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import ROUNDING, CellsOf, Evaluator, PrivacyModel, Rows
from fedanon.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Population:
    """People as points in the space of the quasi-identifiers, one row per person.

    Parameters
    ----------
    points : one row per person.
    schema : of the release.
    trees : the taxonomies of columns by rule, which hold the codes of the population alone.
    """

    points: FloatArray
    schema: Schema
    trees: Mapping[str, Hierarchy]

    @classmethod
    def read(cls, path: str | Path, schema: Schema) -> Population:
        """The quasi-identifiers of ``schema`` in a file, CSV or Parquet; other columns are not looked at.

        A missing value is matched by no cell but that of a missing value.
        """
        frame = read_frame(path)
        quasi = schema.quasi_identifiers
        absent = [a.name for a in quasi if a.name not in frame]
        if absent:
            raise SchemaError(f"The population lacks {len(absent)} quasi-identifiers: {', '.join(absent[:10])}.")
        declared = Schema(quasi, missing_values=schema.missing_values)
        table = Table.from_frame(frame[[a.name for a in quasi]], declared, missing="category")
        ruled = [c for c in table.columns if isinstance(c.attribute, Categorical) and c.attribute.rule is not None]
        return cls(points(table), schema, {column.name: column.hierarchy for column in ruled})

    def __len__(self) -> int:
        return len(self.points)

    def bounds(self, cells: Mapping[str, Cells]) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest point of every class of cells."""
        for attribute in self.schema.quasi_identifiers:
            if isinstance(attribute, Numeric) and isinstance(cells[attribute.name], Nodes):
                raise ConfigError(
                    f"The numeric column {attribute.name!r} is published by its taxonomy, which cannot be matched with "
                    "a population: use the method's default profile."
                )
        ends = [self._ends(cells[a.name], a) for a in self.schema.quasi_identifiers]
        return np.column_stack([low for low, _ in ends]), np.column_stack([high for _, high in ends])

    def _ends(self, cells: Cells, attribute: Numeric | Categorical) -> tuple[FloatArray, FloatArray]:
        if attribute.name not in self.trees or not isinstance(cells, Nodes):
            return cell_bounds(cells, attribute)
        placed = cells.placed_in(self.trees[attribute.name])
        low, high = cell_bounds(placed, attribute)
        # a node that the taxonomy does not have holds nobody of the population
        return np.where(placed.nodes < 0, np.inf, low), np.where(placed.nodes < 0, -np.inf, high)


@dataclass(frozen=True, kw_only=True)
class PopulationModel(PrivacyModel):
    """Base of the models that look at a population: those released are some of its people.

    Cells are matched with the population, so they must hold the true values.
    """

    subject = "population"
    needs_truth = True

    population: str = parameter(help="file with the quasi-identifiers of the population, one row per person")


# ---- k-map ---------------------------------------------------------------------------------------


@PRIVACY_MODELS.register("k_map")
@dataclass(frozen=True, kw_only=True)
class KMap(PopulationModel):
    """Every published record matches at least ``k`` people of the population (Sweeney 2001).

    Cells may overlap: a person counts in every cell that holds their values, as an attacker who has the population
    would count. Merging only widens cells, so the model is monotone.
    """

    title = "k-map"

    k: int = parameter(help="least number of people of the population a record matches", at_least=1)

    def evaluator(self, rows: Rows, published: BoolArray) -> Evaluator:
        """Read the population once; see :class:`PrivacyModel`."""
        from fedanon.kernels.scan import points_in_cells

        people = Population.read(self.population, rows.schema)

        def satisfied(_: Groups, cells: CellsOf) -> BoolArray:
            return np.asarray(points_in_cells(people.points, *people.bounds(cells())) >= self.k)

        return Evaluator(satisfied)

    def describe(self, unit: Unit) -> str:
        """One clause."""
        return f"quasi-identifiers that match at least {self.k} people of the population"

    def __str__(self) -> str:
        return f"{self.k}-map"


# ---- delta-presence ------------------------------------------------------------------------------


@PRIVACY_MODELS.register("presence")
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
    hides_presence = True

    high: float = parameter(help="largest probability", at_least=0, at_most=1)
    low: float = parameter(0.0, help="least probability", at_least=0, at_most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ConfigError(f"DeltaPresence has low={self.low:g} above high={self.high:g}.")

    def evaluator(self, rows: Rows, published: BoolArray) -> Evaluator:
        """Read the population once; see :class:`PrivacyModel`."""
        from fedanon.kernels.scan import largest_in_cells, points_in_cells, shares_of_points

        population = Population.read(self.population, rows.schema)
        points = population.points

        def satisfied(groups: Groups, cells: CellsOf) -> BoolArray:
            bounds = population.bounds(cells())
            share = rows.people(groups) / np.maximum(points_in_cells(points, *bounds), 1)
            total, largest = shares_of_points(points, *bounds, share)
            # a person whom no class matches, or too few of the released, can be helped by wider cells anywhere
            if (largest < self.low - ROUNDING).any():
                return np.zeros(groups.count, dtype=bool)
            high = np.maximum(share, largest_in_cells(points, total, *bounds))
            return np.asarray(high <= self.high + ROUNDING)

        return Evaluator(satisfied)

    def describe(self, unit: Unit) -> str:
        """One clause."""
        return f"people who are in the release with a probability of {self.low:g} to {self.high:g}"

    def __str__(self) -> str:
        return f"({self.low:g}, {self.high:g})-presence"
