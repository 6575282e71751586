"""The server side of the Flower app."""

from fedanon.federated.deployment.serving import deployed_server_app

app = deployed_server_app()
