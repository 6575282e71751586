"""Every name of Flower's that we use although Flower does not call it public, and what stops working without it.

Public are `flwr.app`, `flwr.clientapp`, `flwr.serverapp` and `flwr.simulation`. All else may change with any version of
Flower: before the range of versions in `pyproject.toml` is widened, `tests/federated/test_flower_private.py` has a test
per name here, and another one holds this list against what the code imports.
"""

from __future__ import annotations

from collections.abc import Mapping

#: packages whose names Flower promises to keep
PUBLIC = frozenset({"flwr", "flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.simulation"})

#: what breaks -> module -> names
PRIVATE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "messages are no longer taken apart and put together (packing, gate)": {
        "flwr.app.message": ("make_message", "remove_content_from_message"),
        "flwr.clientapp.typing": ("ClientAppCallable", "Mod"),
        "flwr.common.serde": (
            "context_from_proto",
            "context_to_proto",
            "fab_from_proto",
            "message_from_proto",
            "message_to_proto",
            "recorddict_from_proto",
            "recorddict_to_proto",
            "run_from_proto",
        ),
        "flwr.proto.message_pb2": ("Context", "Message", "PullObjectResponse", "PushObjectRequest"),
        "flwr.proto.recorddict_pb2": ("RecordDict",),
        "flwr.supercore.inflatable.inflatable_object": (
            "get_all_nested_objects",
            "get_object_tree",
            "iterate_object_tree",
            "no_object_id_recompute",
        ),
        "flwr.supercore.inflatable.inflatable_protobuf_utils": (
            "make_confirm_message_received_fn_protobuf",
            "make_pull_object_fn_protobuf",
            "make_push_object_fn_protobuf",
        ),
        "flwr.supercore.inflatable.inflatable_utils": (
            "ObjectPullError",
            "ObjectPushError",
            "inflate_object_from_contents",
            "pull_and_inflate_object_from_tree",
            "push_objects",
        ),
    },
    "a node does not reach its SuperLink (`fedanon node run`)": {
        "flwr.common.config": ("get_fused_config_from_fab",),
        "flwr.common.constant": ("SUPERLINK_NODE_ID", "ErrorCode", "Status"),
        "flwr.proto.fab_pb2": ("GetFabRequest",),
        "flwr.proto.fleet_pb2": (
            "ActivateNodeRequest",
            "DeactivateNodeRequest",
            "PullMessagesRequest",
            "PullMessagesResponse",
            "PushMessagesRequest",
            "RegisterNodeFleetRequest",
        ),
        "flwr.proto.heartbeat_pb2": ("SendNodeHeartbeatRequest",),
        "flwr.proto.node_pb2": ("Node",),
        "flwr.proto.run_pb2": ("GetRunRequest",),
        "flwr.supercore.error": ("ApiErrorCode", "FlowerError"),
        "flwr.supercore.interceptors.http.runtime_version": ("RuntimeVersionHttpInterceptor",),
        "flwr.supercore.primitives.asymmetric": ("generate_key_pairs", "public_key_to_bytes"),
        "flwr.supercore.protobuf.client": ("ProtobufClient", "ProtobufClientInterceptor"),
        "flwr.supercore.task_identity": ("TaskIdentity",),
        "flwr.supernode.fleet_http_client": ("FleetHttpClient",),
        "flwr.supernode.node_auth_http_interceptor": ("NodeAuthHttpInterceptor",),
    },
    "nodes are not let in, listed or removed (`fedanon server register`, `federation status`)": {
        "flwr.cli.flower_config": ("read_superlink_connection",),
        "flwr.cli.supernode.register": ("try_load_public_key",),
        "flwr.cli.utils": ("init_http_client_from_connection",),
        "flwr.proto.control_pb2": (
            "ListNodesRequest",
            "ListRunsRequest",
            "RegisterNodeRequest",
            "StopRunRequest",
            "UnregisterNodeRequest",
        ),
    },
    "the server's SuperLink does not start, or without its short way for messages (`fedanon server run`)": {
        "flwr.proto.runtime_pb2": (
            "PullAppMessagesRequest",
            "PullAppMessagesResponse",
            "PushAppMessagesRequest",
            "PushAppMessagesResponse",
        ),
        "flwr.server.superlink.linkstate": ("LinkState",),
        "flwr.server.superlink.utils": ("check_abort",),
        "flwr.supercore": ("http_logging",),
        "flwr.supercore.constant": ("SYSTEM_MESSAGE_TYPE",),
        "flwr.supercore.dependencies.runtime": ("TaskDependency",),
        "flwr.supercore.protobuf.routing": ("ProtobufRoute",),
        "flwr.supercore.protobuf.translation": ("PROTOBUF_REQUEST_DEPENDENCY", "PROTOBUF_REQUEST_TYPES"),
        "flwr.supercore.state.alembic.utils": ("run_migrations",),
        "flwr.superlink": ("extensions",),
        "flwr.superlink.cli.flower_superlink": ("flower_superlink",),
        "flwr.superlink.dependencies.linkstate": ("get_linkstate",),
        "flwr.superlink.grid.http_grid": ("HttpGrid",),
        "flwr.superlink.routers.control": ("middlewares",),
        "flwr.superlink.servicer.fleet": ("fleet_handlers",),
        "flwr.superlink.servicer.runtime": ("runtime_handlers",),
    },
}


def private_names() -> dict[tuple[str, str], str]:
    """Module and name -> what breaks without it."""
    return {
        (module, name): breaks
        for breaks, modules in PRIVATE.items()
        for module, names in modules.items()
        for name in names
    }
