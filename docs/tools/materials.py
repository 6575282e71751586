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


def license_of(entry: dict[str, str]) -> str:
    """What a package declares; else the title of the license file it ships; else UNKNOWN."""
    declared, shipped = entry["License"].strip(), entry["LicenseText"].strip()
    if declared not in ("", "UNKNOWN"):
        return declared.splitlines()[0]
    title = shipped.splitlines()[0] if shipped else ""
    # a file may begin with a copyright notice, which is no license
    return f"{title.strip()} (title of its file)" if "license" in title.lower() else "UNKNOWN"


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
        listed += ["--with-license-file", "--no-license-path", "--format=json"]
        found = json.loads(subprocess.run(listed, check=True, capture_output=True, text=True).stdout)
    for entry in found:
        entry["License"] = license_of(entry)
    rows = [f"| {entry['Name']} | {entry['Version']} | {entry['License']} | {entry['URL']} |" for entry in found]
    head = ["| Name | Version | License | URL |", "| --- | --- | --- | --- |"]
    (OUT / "licenses.md").write_text("\n".join([*head, *rows, ""]), encoding="utf-8")
    unknown = [entry["Name"] for entry in found if entry["License"] == "UNKNOWN"]
    parts = len(json.loads((OUT / "sbom.json").read_text(encoding="utf-8")).get("components", []))
    print(f"{parts} parts in {OUT / 'sbom.json'}; {len(found)} licenses, without one: {', '.join(unknown) or 'none'}")
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main(*sys.argv[1:])
