"""Schemas: read strictly, hashed by meaning, written so that they read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.datasets.files import bundled_schema
from fedanon.errors import DataError, FedanonError, SchemaError

AGE = '[attributes.age]\nrole = "quasi_identifying"\ntype = "numeric"\nrange = [0, 110]\n'


@pytest.fixture
def read(tmp_path):
    def from_text(text):
        path = tmp_path / "schema.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Schema.read(path)

    return from_text


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no attributes"),
        ("name = ", "not valid TOML"),
        ("color = 1\n" + AGE, "unknown keys: color"),
        (AGE + "rank = 1\n", "unknown keys: rank"),
        (AGE + '[attributes.x]\nrole = "secret"\n', "role of 'x' must be one of"),
        (AGE + '[attributes.x]\ntype = "color"\n', "type of 'x'"),
        (AGE + '[attributes.x]\ntype = "categorical"\n', "needs values"),
        (AGE + '[attributes.x]\ntype = "numeric"\nrange = [2, 1]\n', "range of two numbers"),
        (AGE + '[attributes.x]\ntype = "numeric"\nrange = [0, inf]\n', "range of two numbers"),
        (AGE + '[attributes.x]\nvalues = ["a"]\ntaxonomy = ["a"]\ntype = "categorical"\n', "values and taxonomy"),
        ('target = "y"\n' + AGE, "target column 'y' is not declared"),
        ('target = "age"\n' + AGE, "cannot be a quasi-identifier"),
        ('person_id = "age"\n' + AGE, "must have the role 'identifying'"),
        ("missing_values = [1]\n" + AGE, "list of texts"),
        (AGE + '[attributes.x]\nrole = "quasi_identifying"\n', "need a type"),
        ("attributes = {age = 1}", "must be a table"),
    ],
)
def test_broken_schemas(read, text, match):
    with pytest.raises(SchemaError, match=match):
        read(text)


def test_files_that_cannot_be_read(read, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        Schema.read(tmp_path / "no.toml")
    with pytest.raises(DataError, match="UTF-8"):
        read(b"name = '\xff'")


@pytest.mark.parametrize("file", ["../secret.csv", "/etc/passwd", "x/../../secret.csv"])
def test_a_hierarchy_file_cannot_lie_outside(read, tmp_path, file):
    (tmp_path.parent / "secret.csv").write_text("CANARY-93417;*\n")
    with pytest.raises(SchemaError, match="outside the schema's folder") as caught:
        read(f'[attributes.x]\ntype = "categorical"\nhierarchy = "{file}"\n')
    assert "CANARY" not in str(caught.value)


def test_a_link_out_of_the_folder_is_not_followed(read, tmp_path):
    (tmp_path.parent / "linked.csv").write_text("a;*\n")
    (tmp_path / "link.csv").symlink_to(tmp_path.parent / "linked.csv")
    with pytest.raises(SchemaError, match="outside"):
        read('[attributes.x]\ntype = "categorical"\nhierarchy = "link.csv"\n')


def test_a_hierarchy_file_beside_the_schema(read, tmp_path):
    (tmp_path / "ward.csv").write_text("a;A;*\nb;B;*\n")
    schema = read('[attributes.x]\ntype = "categorical"\nhierarchy = "ward.csv"\n')
    assert schema["x"].hierarchy.n_leaves == 2


def test_the_hash_is_that_of_the_meaning(read):
    one = read(AGE)
    assert one.sha256 == read("# a remark\n" + AGE.replace("[0, 110]", "[0.0, 110.0]")).sha256
    assert one.sha256 != read(AGE.replace("110", "111")).sha256


def test_published_columns(schema):
    assert schema.published == ["age", "ward", "diagnosis", "note"]


@pytest.mark.parametrize("name", ["adult", "nhanes", "randhie", "heart"])
def test_bundled_schemas_are_written_and_read(read, name):
    schema = bundled_schema(name)
    again = read(schema_toml(schema, comment="line one\n\nline two"))
    assert again == schema
    assert again.sha256 == schema.sha256


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
label = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def hierarchies(draw):
    """A tree of one to three levels over unique labels."""
    labels = draw(st.lists(label.filter(lambda x: x != "*"), min_size=3, max_size=12, unique=True))
    inner, leaves = labels[: len(labels) // 3], labels[len(labels) // 3 :]
    root = draw(st.sampled_from(["*", 'all\n"of" them']).filter(lambda root: root not in labels))
    paths = []
    for leaf in leaves:
        above = draw(st.sampled_from([(), *((node,) for node in inner[1:]), *((inner[0], node) for node in inner[1:])]))
        paths.append((leaf, *reversed(above), root))
    return paths


@st.composite
def attributes(draw, name):
    kind = draw(st.sampled_from(["numeric", "tree", "flat", "text"]))
    role = draw(st.sampled_from([Role.INSENSITIVE, Role.SENSITIVE, Role.IDENTIFYING]))
    if kind == "text":
        return FreeText(name, role)
    if kind == "numeric":
        low, high = sorted([draw(numbers), draw(numbers)])
        return Numeric(name, role, low, high, draw(st.booleans()))
    if kind == "flat":
        return Categorical(
            name, role, Hierarchy.flat(draw(st.lists(label, min_size=1, unique=True).filter(lambda v: "*" not in v)))
        )
    try:
        return Categorical(name, role, Hierarchy.from_paths(draw(hierarchies())))
    except SchemaError:  # a label drawn under two parents
        return Categorical(name, role, Hierarchy.from_nested({"A": ["a", {"B": ["b"]}], "c": []}))


@st.composite
def schemas(draw):
    names = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    columns = tuple(draw(attributes(name)) for name in names)
    tokens = tuple(draw(st.lists(text, max_size=2)))
    return Schema(columns, name=draw(text), title=draw(text), missing_values=tokens)


@settings(max_examples=150)
@given(schemas())
def test_any_schema_is_written_and_read(tmp_path_factory, schema):
    path = tmp_path_factory.mktemp("toml") / "schema.toml"
    path.write_bytes(schema_toml(schema).encode())
    again = Schema.read(path)
    assert again.to_dict() == schema.to_dict()
    assert again.sha256 == schema.sha256
    assert again.names == schema.names


def test_a_deep_tree_is_written_and_read(read):
    paths = [[f"leaf{i}", *(f"n{i}.{level}" for level in range(60)), "*"] for i in range(2)]
    schema = Schema((Categorical("x", Role.INSENSITIVE, Hierarchy.from_paths(paths)),))
    assert read(schema_toml(schema)).sha256 == schema.sha256


def test_long_lists_are_wrapped(read):
    schema = Schema((Categorical("x", Role.INSENSITIVE, Hierarchy.flat(f"value {i}" for i in range(100))),))
    written = schema_toml(schema)
    assert max(map(len, written.splitlines())) <= 120
    assert read(written) == schema


def test_every_error_is_one_of_ours(read):
    for junk in ("[[attributes]]", "attributes = []", "[attributes]\nx = []", "[attributes.x]\nrole = []"):
        with pytest.raises(FedanonError):
            read(junk)
