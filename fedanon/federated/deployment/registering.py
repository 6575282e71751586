"""`flwr supernode register` for many keys in one process: starting Flower's command takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedanon.federated.deployment import flower

#: what Flower says of a key it knows
KNOWN = "already in use"


def register(keys: Sequence[Path], link: str, env: Mapping[str, str]) -> list[str]:
    """Register the keys under the names of their files; return the names that failed."""
    command = ["-m", __name__, link, *map(str, keys)]
    _, said = flower.call_python(command, env, seconds=60 + 5 * len(keys))
    done = {line.removeprefix("registered ") for line in said.splitlines() if line.startswith("registered ")}
    return [key.stem for key in keys if key.stem not in done]


def main() -> None:
    """In the process: the name of the SuperLink, then the files."""
    from flwr.cli.app import app

    link, *keys = sys.argv[1:]
    for key in keys:
        name = Path(key).stem
        try:
            app(["supernode", "register", key, link, "--name", name], standalone_mode=False)
        except (Exception, SystemExit) as error:
            if KNOWN not in str(error):
                print(f"failed {name}: {error}")
                continue
        print(f"registered {name}")


if __name__ == "__main__":
    main()
