"""Wheel and sdist: the same bytes twice, and both work in an empty environment, on every Python at hand."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from shutil import which

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
#: interpreters to try, by name or path
PYTHONS = os.environ.get("FEDANON_PYTHONS", "python3.11 python3.12 python3.13").split()
DATE = "1700000000"


def build(folder: Path) -> dict[str, Path]:
    """Wheel and sdist by their endings."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": DATE}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
    return {path.suffix: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(tmp_path_factory.mktemp("dist"))


def test_built_twice_they_are_the_same(built: dict[str, Path], tmp_path: Path) -> None:
    again = build(tmp_path)
    assert set(built) == {".whl", ".gz"}
    for ending, path in built.items():
        assert path.read_bytes() == again[ending].read_bytes()


def test_the_sdist_holds_what_tests_and_documentation_need(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for file in ("mkdocs.yml", "Makefile", "docs/index.md", "tests/conftest.py", "examples/README.md", "server/app.py"):
        assert file in names


def installed(python: str, package: Path, folder: Path) -> Path:
    """An empty environment with the package, and its bin folder."""
    found = which(python)
    if found is None or subprocess.run([found, "--version"], capture_output=True).returncode:
        pytest.skip(f"{python} is not at hand")
    subprocess.run([found, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", str(package)], check=True)
    return folder / "bin"


def use(bin_folder: Path, work: Path) -> None:
    """A release, made and verified with nothing but what the package brings."""
    work.mkdir()
    for command in (
        "--version",
        "data example",
        "anonymize patients.csv --schema schema.toml --k 5 -o out.csv",
        "verify out.csv.manifest.json",
    ):
        subprocess.run([str(bin_folder / "fedanon"), *command.split()], cwd=work, check=True, capture_output=True)
    assert (work / "out.csv").exists()


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_works_in_an_empty_environment(python: str, built: dict[str, Path], tmp_path: Path) -> None:
    use(installed(python, built[".whl"], tmp_path / "venv"), tmp_path / "work")


def test_the_sdist_works_in_an_empty_environment(built: dict[str, Path], tmp_path: Path) -> None:
    use(installed(PYTHONS[0], built[".gz"], tmp_path / "venv"), tmp_path / "work")


def test_pipx_installs_it(built: dict[str, Path], tmp_path: Path) -> None:
    tool = which("pipx") or which("pipx", path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip("pipx is not at hand")
    env = {**os.environ, "PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    subprocess.run([tool, "install", "--python", sys.executable, str(built[".whl"])], env=env, check=True)
    use(tmp_path / "bin", tmp_path / "work")
