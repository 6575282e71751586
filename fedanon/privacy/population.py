"""A population table: the people among whom an attacker looks for those of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedanon.data.cells import Cells, Nodes
from fedanon.data.csv_file import read_frame
from fedanon.data.hierarchy import FloatArray
from fedanon.data.schema import Numeric, Schema
from fedanon.data.spans import cell_bounds, points
from fedanon.data.table import Table
from fedanon.errors import ConfigError, SchemaError
from fedanon.parameters import parameter
from fedanon.privacy.base import PrivacyModel


@dataclass(frozen=True, eq=False)
class Population:
    """People as points in the space of the quasi-identifiers, one row a person."""

    points: FloatArray
    schema: Schema

    @classmethod
    def read(cls, path: str | Path, schema: Schema) -> Population:
        """The quasi-identifiers of ``schema`` in a CSV file; other columns are not looked at.

        A missing value is matched by no cell but that of a missing value.
        """
        frame = read_frame(path)
        quasi = schema.quasi_identifiers
        absent = [a.name for a in quasi if a.name not in frame]
        if absent:
            raise SchemaError(f"The population lacks {len(absent)} quasi-identifiers: {', '.join(absent[:10])}.")
        declared = Schema(quasi, missing_values=schema.missing_values)
        table = Table.from_frame(frame[[a.name for a in quasi]], declared, missing="category")
        return cls(points(table), schema)

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
        ends = [cell_bounds(cells[a.name], a) for a in self.schema.quasi_identifiers]
        return np.column_stack([low for low, _ in ends]), np.column_stack([high for _, high in ends])


@dataclass(frozen=True, kw_only=True)
class PopulationModel(PrivacyModel):
    """Base of the models that look at a population: those released are some of its people.

    Cells are matched with the population, so they must hold the true values.
    """

    needs_truth = True

    population: str = parameter(help="CSV file with the quasi-identifiers of the population, a row a person")
