"""Engineer: what a node answers, decided in its own file; a run that asks for too much is refused."""

from pathlib import Path
from tempfile import mkdtemp

from fedanon.errors import FedanonError
from fedanon.federated.deployment.new_federation import new_federation
from fedanon.learning.settings import RunSettings

made = new_federation(Path(mkdtemp()) / "trial", nodes=2, dataset="adult")
node = made.nodes[0]
print(f"{node.folder.name}: min_k {node.config.min_k}, scores on a {node.config.scores}, {node.config.methods}")

for method, settings in (("mondrian", {"k": 10}), ("mondrian", {"k": 2}), ("identity", {})):
    try:
        node.config.check_run(RunSettings(method=method, method_settings=settings))
        print(f"{method} {settings}: allowed")
    except FedanonError as error:
        print(f"{method} {settings}: refused. {error}")
