"""Bill of materials (CycloneDX) and licenses of everything `fedanon[all]` brings, from an empty environment: `make sbom`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "sbom"
BIN = Path(sys.executable).parent


def main(extra: str = "all") -> None:
    """Write sbom.json and licenses.md; a package without a license is an error."""
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--constraint",
            str(ROOT / "constraints.txt"),
            f"{ROOT}[{extra}]",
        ]
        subprocess.run(install, check=True)
        subprocess.run(
            [str(BIN / "cyclonedx-py"), "environment", python, "--output-file", str(OUT / "sbom.json")], check=True
        )
        listed = [str(BIN / "pip-licenses"), "--python", python, "--from=mixed", "--with-urls", "--order=license"]
        found = json.loads(
            subprocess.run([*listed, "--format=json"], check=True, capture_output=True, text=True).stdout
        )
        text = subprocess.run([*listed, "--format=markdown"], check=True, capture_output=True, text=True).stdout
    (OUT / "licenses.md").write_text(text, encoding="utf-8")
    unknown = [entry["Name"] for entry in found if entry["License"] in ("", "UNKNOWN")]
    parts = len(json.loads((OUT / "sbom.json").read_text(encoding="utf-8")).get("components", []))
    print(f"{parts} parts in {OUT / 'sbom.json'}; {len(found)} licenses, without one: {', '.join(unknown) or 'none'}")
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main(*sys.argv[1:])
