"""Two apps in the shape of Flower's quick starts, as their authors wrote them, and what changes behind the gate."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from tests.federated.foreign import PROJECT

SKLEARN_TASK = """
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

LABELS = [0, 1, 2]
FEATURES = ["sepal length", "sepal width", "petal length", "petal width"]


def get_params(model):
    return [model.coef_, model.intercept_]


def set_params(model, params):
    model.coef_, model.intercept_ = params
    return model


def new_model():
    model = LogisticRegression(max_iter=1, warm_start=True, solver="saga")
    model.classes_ = np.array(LABELS)
    return set_params(model, [np.zeros((len(LABELS), len(FEATURES))), np.zeros(len(LABELS))])


def load_data(partition_id, num_partitions):
    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[partition_id::num_partitions]
    train, test = np.split(order, [int(0.8 * len(order))])
    return x[train], y[train], x[test], y[test]
"""
SKLEARN_CHANGED = SKLEARN_TASK.replace(
    "from sklearn.datasets import load_iris\n", "from fedanon.federated.gate import load_release\n"
).replace(
    SKLEARN_TASK[SKLEARN_TASK.index("    x, y = load_iris") :],
    """    train, test = load_release().train, load_release().test
    return train.features, train.target, test.features, test.target
""",
)
SKLEARN_CLIENT = """
import warnings

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from sklearn.metrics import log_loss

from theirs.task import LABELS, get_params, load_data, new_model, set_params

app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    model = set_params(new_model(), msg.content["arrays"].to_numpy_ndarrays())
    x, y, _, _ = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
    loss = log_loss(y, model.predict_proba(x), labels=LABELS)
    metrics = {"num-examples": len(x), "train_logloss": loss, "train_accuracy": model.score(x, y)}
    content = RecordDict({"arrays": ArrayRecord(get_params(model)), "metrics": MetricRecord(metrics)})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    model = set_params(new_model(), msg.content["arrays"].to_numpy_ndarrays())
    _, _, x, y = load_data(context.node_config["partition-id"], context.node_config["num-partitions"])
    loss = log_loss(y, model.predict_proba(x), labels=LABELS)
    metrics = {"num-examples": len(x), "test_logloss": loss, "accuracy": model.score(x, y)}
    return Message(content=RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
"""
SKLEARN_SERVER = """
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from theirs.task import get_params, new_model

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    rounds = context.run_config["num-server-rounds"]
    strategy = FedAvg(fraction_train=1.0, fraction_evaluate=1.0)
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(get_params(new_model())), num_rounds=rounds)
    print("FINAL", result.evaluate_metrics_clientapp[rounds])
"""
SKLEARN_LIMITS = """
method = "mondrian"
method_settings = {k = 5}
seconds = 300
slot_seconds = 1

[replies.train.arrays]
"arrays/0" = "float32 3x4"
"arrays/1" = "float32 3"

[replies.train.numbers]
"metrics/num-examples" = "0..100000"
"metrics/train_logloss" = "0..100 3 decimals"

[replies.evaluate.numbers]
"metrics/num-examples" = "0..100000"
"metrics/test_logloss" = "0..100 3 decimals"
"metrics/accuracy" = "0..1 3 decimals"
"""

TORCH_TASK = """
import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def load_data(partition_id, num_partitions, batch_size):
    x, y = load_iris(return_X_y=True)
    rows = [{"img": torch.tensor(a, dtype=torch.float32), "label": int(b)} for a, b in zip(x, y)]
    rows = rows[partition_id::num_partitions]
    split = int(0.8 * len(rows))
    trainloader = DataLoader(rows[:split], batch_size=batch_size, shuffle=True)
    return trainloader, DataLoader(rows[split:], batch_size=batch_size)


def train(net, trainloader, epochs, lr, device):
    net.to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    running_loss = 0.0
    for _ in range(epochs):
        for batch in trainloader:
            optimizer.zero_grad()
            loss = criterion(net(batch["img"].to(device)), batch["label"].to(device))
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
    return running_loss / (epochs * len(trainloader))


def test(net, testloader, device):
    net.to(device)
    correct, loss = 0, 0.0
    with torch.no_grad():
        for batch in testloader:
            outputs = net(batch["img"].to(device))
            loss += nn.CrossEntropyLoss()(outputs, batch["label"].to(device)).item()
            correct += (outputs.argmax(dim=1) == batch["label"].to(device)).sum().item()
    return loss / len(testloader), correct / len(testloader.dataset)
"""
TORCH_CHANGED = TORCH_TASK.replace(
    "from sklearn.datasets import load_iris\n", "from fedanon.federated.gate import load_release\n"
).replace(
    TORCH_TASK[TORCH_TASK.index("    x, y = load_iris") : TORCH_TASK.index("\n\ndef train(")],
    """    train, test = (part.to_torch("img", "label") for part in (load_release().train, load_release().test))
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(test, batch_size=batch_size)
""",
)
TORCH_CLIENT = """
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from theirs.task import Net, load_data
from theirs.task import test as test_fn
from theirs.task import train as train_fn

app = ClientApp()


def start(msg, context):
    model = Net()
    model.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    where = context.node_config["partition-id"], context.node_config["num-partitions"]
    return model.to(device), device, load_data(*where, context.run_config["batch-size"])


@app.train()
def train(msg: Message, context: Context):
    model, device, (trainloader, _) = start(msg, context)
    loss = train_fn(model, trainloader, context.run_config["local-epochs"], msg.content["config"]["lr"], device)
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(trainloader.dataset)})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    model, device, (_, testloader) = start(msg, context)
    loss, accuracy = test_fn(model, testloader, device)
    metrics = MetricRecord({"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(testloader.dataset)})
    return Message(content=RecordDict({"metrics": metrics}), reply_to=msg)
"""
TORCH_SERVER = """
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from theirs.task import Net

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    result = FedAvg(fraction_evaluate=1.0).start(
        grid=grid,
        initial_arrays=ArrayRecord(Net().state_dict()),
        train_config=ConfigRecord({"lr": config["learning-rate"]}),
        num_rounds=config["num-server-rounds"],
    )
    print("FINAL", result.evaluate_metrics_clientapp[config["num-server-rounds"]])
"""
TORCH_LIMITS = """
method = "mondrian"
method_settings = {k = 5}
seconds = 300
slot_seconds = 1

[replies.train.arrays]
"arrays/fc1.weight" = "float32 16x4"
"arrays/fc1.bias" = "float32 16"
"arrays/fc2.weight" = "float32 3x16"
"arrays/fc2.bias" = "float32 3"

[replies.train.numbers]
"metrics/train_loss" = "0..100 3 decimals"
"metrics/num-examples" = "0..100000"

[replies.evaluate.numbers]
"metrics/eval_loss" = "0..100 3 decimals"
"metrics/eval_acc" = "0..1 3 decimals"
"metrics/num-examples" = "0..100000"
"""


@dataclass(frozen=True)
class QuickStart:
    """An app: its task before and after, and what it may answer."""

    task: str
    changed: str
    client: str
    server: str
    config: str
    limits: str
    score: str

    @property
    def files(self) -> dict[str, str]:
        """The app as it runs behind the gate."""
        return {
            "pyproject.toml": PROJECT + self.config,
            "theirs/__init__.py": "",
            "theirs/client_app.py": self.client,
            "theirs/server_app.py": self.server,
            "theirs/task.py": self.changed,
        }

    @property
    def lines(self) -> tuple[int, int]:
        """How many lines were written or changed, and how many were removed."""
        found = [line[:1] for line in difflib.ndiff(self.task.splitlines(), self.changed.splitlines())]
        return found.count("+"), found.count("-")


APPS = {
    "sklearn": QuickStart(
        SKLEARN_TASK,
        SKLEARN_CHANGED,
        SKLEARN_CLIENT,
        SKLEARN_SERVER,
        "num-server-rounds = 3\n",
        SKLEARN_LIMITS,
        "accuracy",
    ),
    "torch": QuickStart(
        TORCH_TASK,
        TORCH_CHANGED,
        TORCH_CLIENT,
        TORCH_SERVER,
        "num-server-rounds = 3\nbatch-size = 16\nlocal-epochs = 3\nlearning-rate = 0.1\n",
        TORCH_LIMITS,
        "eval_acc",
    ),
}
