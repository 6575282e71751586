"""A trained model in a folder: its numbers, its card, and its schema where that is known; written, read and applied."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.readers import read_frame
from fedanon.data.schema import Schema
from fedanon.data.table import MissingPolicy, Table, check_columns
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.fields import build
from fedanon.io.atomic import atomic_write
from fedanon.learning.model_card import FORMAT, card_text
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.learning.validation import check_arrays
from fedanon.models.base import Parameters
from fedanon.models.encoding import Encoding
from fedanon.models.target import class_values

CARD, CARD_TEXT, SCHEMA = "card.json", "card.md", "schema.json"
#: of models that are averaged, and of trees: the second is a file of xgboost's own
ARRAYS, TREES = "model.npz", "model.json"
MODE = 0o600
MAX_BYTES = 512 * 2**20


def write_model(
    folder: Path,
    card: Mapping[str, Any],
    parameters: Parameters,
    schema: Schema | None = None,
    *,
    replace: bool = False,
) -> Path:
    """Write a model's folder, closed to others; the card comes last, so a folder without one is not whole.

    Parameters
    ----------
    folder : must not hold anything yet, unless ``replace``.
    card : see :func:`fedanon.learning.model_card.make_card`.
    parameters : of the model.
    schema : of the tables it was trained on; a server does not know it.
    replace : whether an earlier model may be overwritten.
    """
    if not replace and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; nothing was written.")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / CARD).unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"The folder {folder} cannot be written: {error.strerror or 'unknown reason'}.") from None
    name, data = _stored(card, parameters)
    atomic_write(folder / name, data, mode=MODE)
    full = {**card, "file": name, "file_sha256": hashlib.sha256(data).hexdigest()}
    if schema is not None:
        atomic_write(folder / SCHEMA, json.dumps(schema.to_dict(), indent=1) + "\n", mode=MODE)
    atomic_write(folder / CARD_TEXT, card_text(full), mode=MODE)
    atomic_write(folder / CARD, json.dumps(full, indent=2, sort_keys=True) + "\n", mode=MODE)
    return folder


def _stored(card: Mapping[str, Any], parameters: Parameters) -> tuple[str, bytes]:
    if make_model(_settings(card)).aggregation == "trees":
        return TREES, parameters[0].tobytes()
    buffer = io.BytesIO()
    np.savez(buffer, *parameters)
    return ARRAYS, buffer.getvalue()


@dataclass(frozen=True)
class SavedModel:
    """A model read back.

    Parameters
    ----------
    card : what is known of it.
    parameters : its numbers.
    schema : of the tables it was trained on, if the folder has it.
    """

    card: Mapping[str, Any]
    parameters: Parameters
    schema: Schema | None

    @classmethod
    def read(cls, folder: Path) -> SavedModel:
        """Read a folder that :func:`write_model` wrote; what was changed since is refused."""
        try:
            card = json.loads((folder / CARD).read_text(encoding="utf-8"))
            if card["format"] != FORMAT or card["file"] not in (ARRAYS, TREES):
                raise DataError(f"The model {folder.name} was written by another version of fedanon.")
            if (folder / card["file"]).stat().st_size > MAX_BYTES:
                raise DataError(f"The model {folder.name} is larger than {MAX_BYTES // 2**20} MB.")
            data = (folder / card["file"]).read_bytes()
            schema = folder / SCHEMA
            known = Schema.from_dict(json.loads(schema.read_text(encoding="utf-8"))) if schema.exists() else None
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(f"{folder} is not the folder of a model, or was not written whole.") from None
        if hashlib.sha256(data).hexdigest() != card["file_sha256"]:
            raise DataError(f"The file {card['file']} is not the one of the card: it was changed.")
        return cls(card, _parameters(card, data), known)

    def predict(
        self, path: Path, schema: Schema | None = None, *, missing: MissingPolicy = "error", encoding: str = "utf-8"
    ) -> pd.DataFrame:
        """The probability of the positive class for every record of a file, and the class that is likelier.

        Parameters
        ----------
        path : a file as training nodes have them; it needs the columns that are features, and no target.
        schema : needed if the model's folder has none; must be that of the training.
        missing : how missing features are treated.
        encoding : of a text file.
        """
        declared = schema or self.schema
        if declared is None:
            raise ConfigError("This model's folder has no schema: --schema names that of the nodes it was trained at.")
        settings = _settings(self.card)
        features = Encoding.from_schema(declared, features=settings.features)
        table = _feature_table(read_frame(path, encoding=encoding), features, declared, missing)
        coded = declared.replacing(*(a for a in table.schema.attributes if a in declared.quasi_identifiers))
        if self.card["schema_sha256"] not in (declared.sha256, coded.sha256) or features.width != self.card["width"]:
            raise SchemaError("The schema is not the one this model was trained with: its hash is another.")
        probability = make_model(settings).predict_proba(self.parameters, features.encode_table(table))
        labels = np.array(class_values(declared), dtype=object)
        return pd.DataFrame(
            {
                "record": np.arange(1, len(table) + 1),
                "probability": probability,
                "predicted": labels[(probability >= 0.5).astype(int)],
            }
        )


def _feature_table(frame: pd.DataFrame, features: Encoding, declared: Schema, missing: MissingPolicy) -> Table:
    """The columns that are features; others may be there if the schema declares them."""
    names, here = [attribute.name for attribute in features.attributes], [str(name) for name in frame.columns]
    expected = tuple(a for a in declared.attributes if a.name in names or a.name in here)
    check_columns(here, len(frame), Schema(expected))
    schema = Schema(features.attributes, missing_values=declared.missing_values).with_quasi_identifiers(names)
    return Table.from_frame(frame[names], schema, missing=missing)


def _settings(card: Mapping[str, Any]) -> RunSettings:
    return build(RunSettings, card["settings"])


def _parameters(card: Mapping[str, Any], data: bytes) -> Parameters:
    if card["file"] == TREES:
        return [np.frombuffer(data, dtype=np.uint8)]
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            found = [stored[f"arr_{i}"] for i in range(len(stored.files))]
    except (OSError, ValueError, KeyError):
        raise DataError("The arrays of the model cannot be read.") from None
    check_arrays(found, make_model(_settings(card)).initial(int(card["width"])))
    return found
