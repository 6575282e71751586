"""The list of keys a running SuperLink lets in, made the same as ours, in one process: Flower's starts take seconds.

The SuperLink looks a key up at every request of a node, so a key that is taken off the list is refused at once, also
in the middle of a run. Flower never forgets such a key, and never takes it on again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedanon.errors import InfeasibleError
from fedanon.federated.deployment import processes

GONE = "unregistered"
DONE = "registered "


def let_in(keys: Sequence[Path], link: str, env: Mapping[str, str]) -> list[str]:
    """Let in the keys, under the names of their files, and no others; return the names that failed.

    Raises
    ------
    InfeasibleError
        If the SuperLink could not be told, so that a key may be let in that should not.
    """
    command = ["-m", __name__, link, *map(str, keys)]
    told, said = processes.call_python(command, env, seconds=120 + 5 * len(keys))
    if not told:
        raise InfeasibleError("The SuperLink could not be told which nodes may take part.")
    done = {line.removeprefix(DONE) for line in said.splitlines() if line.startswith(DONE)}
    return [key.stem for key in keys if key.stem not in done]


def main() -> None:
    """In the process: the name of the SuperLink, then the files."""
    from flwr.cli.flower_config import read_superlink_connection
    from flwr.cli.supernode.register import try_load_public_key
    from flwr.cli.utils import init_http_client_from_connection
    from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, UnregisterNodeRequest

    link, *files = sys.argv[1:]
    wanted = {try_load_public_key(Path(file)): Path(file).stem for file in files}
    control = init_http_client_from_connection(read_superlink_connection(link))
    nodes = control.ListNodes(ListNodesRequest()).nodes_info
    known = {node.public_key: node.node_id for node in nodes if node.status != GONE}
    for key in known.keys() - wanted.keys():
        control.UnregisterNode(UnregisterNodeRequest(node_id=known[key]))
    for key, name in wanted.items():
        try:
            if key not in known:
                control.RegisterNode(RegisterNodeRequest(public_key=key, name=name))
            print(f"{DONE}{name}")
        except Exception as error:  # the others are still to be told
            print(f"failed {name}: {error}")


if __name__ == "__main__":
    main()
