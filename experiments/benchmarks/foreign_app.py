"""What an app of other people costs behind the gate, per message: CPU seconds of the gate and of the app's process.

    python experiments/benchmarks/foreign_app.py [--messages 5] [--rows 3000]

An app that answers at once, one that imports scikit-learn and fits a logistic regression, and one that imports torch.
The first message, which makes the release, is not counted.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from tests.federated.foreign import AppServer, bundle_that, limits
from tests.federated.hostile_server import make_node

BODIES = {
    "answers at once": "return reply(message)",
    "scikit-learn": """
from sklearn.linear_model import LogisticRegression
train = load_release().train
return reply(message, LogisticRegression(max_iter=20).fit(train.features, train.target).coef_[0])
""",
    "torch": """
import torch
rows = load_release().train.to_torch()
layer = torch.nn.Linear(4, 1)
loss = torch.nn.functional.binary_cross_entropy_with_logits(layer(rows.tensors[0])[:, 0], rows.tensors[1].float())
loss.backward()
return reply(message, layer.weight.grad.numpy()[0])
""",
}


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000)
    chosen = parser.parse_args()
    print(f"{'app':<18}{'gate CPU s':>12}{'app CPU s':>12}{'clock s':>10}   per message, {chosen.rows} rows")
    with tempfile.TemporaryDirectory() as folder:
        node = make_node(Path(folder), rows=chosen.rows)
        for name, body in BODIES.items():
            server = AppServer(node, bundle_that(body), limits(replies_per_run=1000))
            assert server.ask() is not None, server.refusals
            begin = time.perf_counter(), cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
            for _ in range(chosen.messages):
                assert server.ask() is not None, server.refusals
            end = time.perf_counter(), cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
            clock, gate, app = ((b - a) / chosen.messages for a, b in zip(begin, end, strict=True))
            print(f"{name:<18}{gate:>12.2f}{app:>12.2f}{clock:>10.2f}")


if __name__ == "__main__":
    main()
