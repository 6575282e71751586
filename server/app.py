"""The server side of the Flower app."""

from fedanon.federated.server import server_app

app = server_app()
