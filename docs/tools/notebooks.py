"""Run the notebooks of examples/ and write their outputs: `python docs/tools/notebooks.py`; `--check` writes nothing."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "examples"


def main(arguments: list[str]) -> None:
    """Run each from start to end in an empty folder; an error in a cell ends with its traceback."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(
                notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
            ).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times differ at every run
        notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
        if "--check" not in arguments:
            nbformat.write(notebook, path)
        print(f"ran {path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
