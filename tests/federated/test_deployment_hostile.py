"""A hostile server over real TLS: it reads a node that lets it, and nothing of one that `fedanon node init` made."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from fedanon.federated.deployment.egress_log import WORDS, read_egress
from fedanon.federated.policy import NodePolicy
from tests.federated.deployed import PATIENCE, allow, deployed
from tests.federated.hostile_server import OPEN, n_recovered
from tests.federated.test_egress import truth_of

RUN = """
method = "mondrian"
model = "lr"
rounds = 1
test_share = 0.05
method_settings = { k = 5 }
"""
#: starts `fedanon server run` with an app whose rounds are an attack
HOSTILE_SERVER = '''
import sys
from fedanon.federated.deployment import folders
folders.APP += """
from fedanon.federated.server import FederatedRun
from tests.federated.tls_attack import attack
FederatedRun.run = attack
"""
from fedanon.cli.__main__ import main
sys.argv = ["fedanon", *sys.argv[4:]]
main()
'''


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_hostile_server_reads_an_open_node_and_no_default_one(tmp_path: Path) -> None:
    with deployed(tmp_path, RUN, nodes=2, rows=300) as found:
        small = found.tables[0].read_text(encoding="utf-8").splitlines()[:21]
        found.tables[0].write_text("\n".join(small) + "\n", encoding="utf-8")
        allow(found.nodes[0].folder, **OPEN)
        allow(found.nodes[1].folder, **asdict(NodePolicy()))
        server = found.start_server(prefix=[sys.executable, "-c", HOSTILE_SERVER])
        for number in range(2):
            found.start_node(number)
        assert server.wait(PATIENCE) == 0, found.said("server.log")
        told = json.loads((found.server.folder / "attack.json").read_text(encoding="utf-8"))
        recovered = [n_recovered(told[str(i)]["records"], truth_of(found.nodes[i])) for i in range(2)]
        left = read_egress(found.nodes[1].folder)
    print(f"open: {recovered[0]} of {told['0']['n_test']}, default: {recovered[1]} of {told['1']['n_test']}")
    assert (told["0"]["n_test"], told["1"]["n_test"]) == (1, 50)
    assert recovered == [1, 0]
    assert told["1"]["asked"] > 25
    [run] = left
    assert run.answers[WORDS["scores release"]] == told["1"]["asked"]
    assert run.refusals == {}
