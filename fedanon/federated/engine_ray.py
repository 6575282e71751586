"""The Ray engine: Flower's own simulation, for many or heavy clients. Needs the extra `simulation`."""

from __future__ import annotations

import os
from collections.abc import Callable

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated.client import client_app
from fedanon.federated.server import FederatedRun, wait_for_nodes
from fedanon.federated.sources import load_node_table, n_parts
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings

START_SECONDS = 120.0
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def run_with_ray(settings: RunSettings, make: Callable[[Grid], FederatedRun]) -> RunResult:
    """Run the same client app in Ray's processes."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: F401
        from flwr.simulation import run_simulation
    except ModuleNotFoundError:
        raise ConfigError("The ray engine needs Ray: pip install 'fedanon[simulation]'.") from None
    outcomes: list[RunResult] = []
    server = ServerApp()

    @server.main()
    def main(grid: Grid, _context: Context) -> None:
        wait_for_nodes(grid, n_parts(settings), START_SECONDS)
        outcomes.append(make(grid).run())

    # a Ray context carries no run config, so the settings travel with the loader
    app = client_app(lambda context, _settings: load_node_table(context, settings), settings)
    run_simulation(server_app=server, client_app=app, num_supernodes=n_parts(settings))
    if not outcomes:
        raise InfeasibleError("The run on Ray did not finish; its log says why.")
    return outcomes[0]
