"""One reader for every source of a table, and what a result says of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedanon.datasets.source import DataSource
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.federated.sources import default_partition, node_table, partition_rows, provenance, whole_table
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.settings import RunSettings
from tests.hospital_table import (
    HOSPITALS,
    hospital_rows,
    hospital_schema,
    write_csv,
    write_excel,
    write_fhir,
    write_sqlite,
)

SCHEMA = hospital_schema()
ROWS = hospital_rows(60)


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "s.toml"
    path.write_text(SCHEMA, encoding="utf-8")
    return str(path)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return write_csv(ROWS, tmp_path / "pacientes.csv")


def of(schema: str, *data: Path | str, **more: object) -> DataSource:
    return DataSource(data=tuple(map(str, data)), schema=schema, **more)  # type: ignore[arg-type]


def test_the_same_rows_from_every_format(schema: str, csv: Path, tmp_path: Path) -> None:
    views = write_fhir(ROWS, tmp_path / "export")
    with_id = Path(schema).with_name("fhir.toml")
    with_id.write_text(SCHEMA + '[attributes.id]\nrole = "identifying"\n', encoding="utf-8")
    sources = [
        of(schema, csv),
        of(schema, write_excel(ROWS, tmp_path / "pacientes.xlsx")),
        of(schema, write_sqlite(ROWS, tmp_path / "h.db"), query="SELECT * FROM stays"),
        of(str(with_id), tmp_path / "export", views=tuple(map(str, views))),
    ]
    first, *others = [source.load() for source in sources]
    assert (len(first), first.n_people) == (len(ROWS), 60)
    for table in others:
        order = [c.name for c in table.columns]
        codes = table.codes[:, [order.index(c.name) for c in first.columns]]
        assert np.array_equal(codes, first.codes)
        assert np.array_equal(table.person_of_row, first.person_of_row)
        assert [float(w) for w in table.frame["peso"]] == [float(w) for w in first.frame["peso"]]
        assert table.frame["obito"].tolist() == first.frame["obito"].tolist()


def test_a_data_set_is_a_source_too() -> None:
    source = DataSource(data=("randhie",))
    assert (source.name, source.inputs, source.has_parts) == ("randhie", [], False)
    assert source.load().sha256 == whole_table("randhie").sha256
    with pytest.raises(ConfigError, match="read as it is"):
        DataSource(data=("randhie",), missing="wildcard")


def parts(folder: Path) -> list[Path]:
    folder.mkdir()
    return [write_csv(ROWS[ROWS["hospital"] == name], folder / f"{i}.csv") for i, name in enumerate(HOSPITALS)]


def test_files_and_folders_are_nodes(schema: str, tmp_path: Path) -> None:
    files = parts(tmp_path / "nodes")
    (tmp_path / "nodes/notes.md").write_text("not a table")
    for source in (of(schema, *files), of(schema, tmp_path / "nodes")):
        assert source.has_parts
        assert default_partition(source.to_settings()) == "stored"
        chosen = RunSettings(dataset=source.name, source=source.to_settings(), partition="stored")
        sizes = [len(node_table(chosen, i)) for i in range(5)]
        assert sizes == [int((ROWS["hospital"] == name).sum()) for name in HOSPITALS]
        assert sum(sizes) == len(source.load())


def test_a_column_divides_whatever_its_role_and_is_not_published(schema: str, csv: Path) -> None:
    source = of(schema, csv)
    rows = partition_rows(source, "by:hospital", 99, 0)
    assert [len(each) for each in rows] == ROWS.groupby("hospital").size().tolist()
    assert len(partition_rows(source, "dirichlet:5:hospital", 3, 0)) == 3
    assert "hospital" not in whole_table(source).frame
    with pytest.raises(ConfigError, match="declares no column 'ward' to divide"):
        partition_rows(source, "by:ward", 3, 0)


def test_settings_travel_and_a_changed_file_has_another_checkpoint(schema: str, csv: Path) -> None:
    source = of(schema, csv, header=True)
    assert DataSource.from_settings(source.to_settings()) == source
    assert source.to_settings() == {"data": [str(csv)], "schema": schema, "header": True}
    chosen = RunSettings(source=source.to_settings())
    other = RunSettings(source={**source.to_settings(), "sha256": "0"})
    assert Checkpoints.name(chosen) != Checkpoints.name(other)
    assert hash(DataSource.from_settings(other.source)) == hash(source), "what it holds is no other place"
    assert chosen.published().source == {}


def test_a_result_states_names_and_hashes_alone(schema: str, csv: Path) -> None:
    known = provenance(of(schema, csv))
    assert set(known["files"]) == {"pacientes.csv"}
    assert str(csv.parent) not in str(known)
    assert not any(name in str(known) for name in ROWS["nome"][:3])


def test_files_of_the_same_name_are_all_stated(schema: str, tmp_path: Path) -> None:
    files = []
    for name in HOSPITALS[:2]:
        (tmp_path / name).mkdir()
        files.append(write_csv(ROWS[ROWS["hospital"] == name], tmp_path / name / "stays.csv"))
    assert set(provenance(of(schema, *files))["files"]) == {"0: stays.csv", "1: stays.csv"}
    assert {path.parent.name for path in of(schema, *files).inputs} >= set(HOSPITALS[:2])


def test_places_become_absolute_once(schema: str, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(csv.parent)
    source = of("s.toml", "pacientes.csv").absolute()
    assert (source.data, source.schema) == ((str(csv),), schema)
    assert of("s.toml", "sqlite:///h.db", query="q").absolute(Path("/x")).data == ("sqlite:////x/h.db",)
    assert of("s.toml", "postgresql:///db", query="q").absolute(Path("/x")).data == ("postgresql:///db",)


def test_files_of_different_columns(schema: str, csv: Path, tmp_path: Path) -> None:
    other = write_csv(ROWS.drop(columns="cid").assign(extra="Maria"), tmp_path / "other.csv")
    with pytest.raises(
        SchemaError, match=r"other.csv lacks 1 columns of pacientes.csv and has 1 others \(cid\)"
    ) as caught:
        of(schema, csv, other).load()
    assert "Maria" not in str(caught.value)


def test_a_file_that_does_not_fit_is_named(schema: str, csv: Path, tmp_path: Path) -> None:
    ROWS[["cpf"]].to_parquet(tmp_path / "other.parquet")
    with pytest.raises(SchemaError, match=r"^other\.parquet: The data lack 9 declared columns"):
        of(schema, csv, tmp_path / "other.parquet").load()


def test_a_folder_without_tables(schema: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no tables; put one file per node into it"):
        of(schema, tmp_path / "empty").load()


def test_options_that_do_not_go_together(schema: str, csv: Path) -> None:
    with pytest.raises(ConfigError, match="query goes with a database"):
        of(schema, csv, query="SELECT 1")
    with pytest.raises(ConfigError, match="read by its query"):
        of(schema, "sqlite:///h.db", query="q", sheet="s")
    with pytest.raises(ConfigError, match=r"pacientes.csv is read without sheet"):
        of(schema, csv, sheet="s").load()
    with pytest.raises(ConfigError, match="either --schema FILE or --qi"):
        DataSource(data=(str(csv),)).load()
    with pytest.raises(ConfigError, match="Name a file"):
        DataSource(data=())


def test_a_file_without_names_is_not_taken_for_one_with(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("31,01/02/2024,1.5\n32,01/03/2024,2.5\n", encoding="utf-8")
    with pytest.raises(DataError, match="--no-header") as caught:
        DataSource(data=(str(path),), quasi="all").read_frame()
    assert "01/02/2024" not in str(caught.value)
    frame, dialect = DataSource(data=(str(path),), quasi="all", header=False).read_frame()
    assert (list(frame.columns), len(frame)) == (["c1", "c2", "c3"], 2)
    assert dialect is not None
    assert len(DataSource(data=(str(path),), quasi="all", header=True).read_frame()[0]) == 1


def test_separator_and_decimal_mark_are_found_unless_they_are_given(tmp_path: Path) -> None:
    """Commas that part thousands are none of decimals, a strange separator is no letter; both travel with settings."""
    file = tmp_path / "t.csv"
    file.write_text("age;cells\n31;1,000\n42;2,500\n", encoding="utf-8")
    found, dialect = DataSource(data=(str(file),)).read_frame()
    assert dialect is not None
    assert (dialect.separator, dialect.decimal, list(found["cells"])) == (";", ",", ["1.000", "2.500"])
    given = DataSource(data=(str(file),), decimal=".")
    assert list(given.read_frame()[0]["cells"]) == ["1,000", "2,500"]
    assert DataSource.from_settings(given.to_settings()) == given
    file.write_text('a~b\n"1,5"~x\n"2,5"~y\n', encoding="utf-8")
    frame, dialect = DataSource(data=(str(file),), separator="~", decimal=",").read_frame()
    assert list(frame.columns) == ["a", "b"]
    assert list(frame["a"]) == ["1.5", "2.5"]
    with pytest.raises(ConfigError, match="separator"):
        DataSource(data=(str(file),), separator="ab").read_frame()
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ConfigError, match="no CSV file"):
        DataSource(data=(str(tmp_path / "t.parquet"),), separator=";").read_frame()
