"""The client side of the Flower app; a node's own config says where its table lies."""

from fedanon.federated.client import client_app

app = client_app()
