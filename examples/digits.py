r"""Train a classifier of handwritten digits over several workers, and end with the same bits.

One process of this program is one worker. All of them hold the same weights; in each step each
works out the gradient of its own share of the batch, the server adds the gradients up, and all
take the same step with the sum. Start four of them and a server with

    onefold run --workers 4 -- python examples/digits.py

and make life hard for them with

    onefold run --workers 4 --faults repeat=0.2,lose=0.1,lose_reply=0.1,delay=0.2,reorder=0.1 \
        --kill-worker 1 --kill-server 1 --steps 160 -- python examples/digits.py

The accuracy and the digest of the weights that it prints are the same both times. By hand it is
``onefold serve DIRECTORY --workers 2``, then in two terminals ``ONEFOLD_ADDRESS=grpc://...
ONEFOLD_WORKER=a python examples/digits.py`` and the same with ``b``.

Why the bits are the same:

* The batch of a step and each worker's share of it follow from the seed and the step alone.
* Each worker counts exactly once in each sum, and the sum is correctly rounded, so that it does
  not depend on the order in which the gradients arrive.
* A worker keeps nothing on disk. One that is killed and started again learns from the server which
  step is open, takes the steps before it once more with the sums that the server has kept, and so
  has the weights that it had.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.datasets import load_digits

import onefold
from onefold.ledger import Joined
from onefold.update import Tensor

HIDDEN = 64
BATCH = 128
LEARNING_RATE = 0.15
MOMENTUM = 0.9
TEST_EXAMPLES = 360

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Weights = dict[str, Floats]


class Reducer(Protocol):
    """What this program needs of a ``onefold.Client``."""

    @property
    def joined(self) -> Joined: ...  # noqa: D102
    def pull(self, step: int) -> onefold.Aggregate: ...  # noqa: D102
    def reduce(  # noqa: D102
        self, step: int, update: Mapping[str, Tensor], weight: int = 1
    ) -> onefold.Aggregate: ...


@dataclass(frozen=True)
class Digits:
    """Images of 8×8 pixels as rows of 64 numbers from 0 to 1, and which digits they show."""

    images: Floats
    labels: Integers

    @classmethod
    def load(cls) -> tuple[Digits, Digits]:
        """The examples to learn from, and those held out to measure the accuracy."""
        images, labels = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(labels))
        test, train = order[:TEST_EXAMPLES], order[TEST_EXAMPLES:]
        images = (images / 16).astype(np.float32)
        return cls(images[train], labels[train]), cls(images[test], labels[test])

    def take(self, indices: Integers) -> Digits:
        """Some of the examples."""
        return Digits(self.images[indices], self.labels[indices])


def initial_weights(seed: int) -> Weights:
    """The weights that every worker starts from."""
    random = np.random.default_rng([seed, 1])

    def layer(inputs: int, outputs: int) -> Floats:
        weight: Floats = random.standard_normal((inputs, outputs), np.float32)
        return weight / np.float32(np.sqrt(inputs))

    return {
        "layer1.weight": layer(64, HIDDEN),
        "layer1.bias": np.zeros(HIDDEN, np.float32),
        "layer2.weight": layer(HIDDEN, 10),
        "layer2.bias": np.zeros(10, np.float32),
    }


def forward(weights: Weights, images: Floats) -> tuple[Floats, Floats]:
    """The hidden values and the logits."""
    hidden: Floats = np.maximum(images @ weights["layer1.weight"] + weights["layer1.bias"], 0)
    logits: Floats = hidden @ weights["layer2.weight"] + weights["layer2.bias"]
    return hidden, logits


def gradient_sum(weights: Weights, digits: Digits) -> Weights:
    """The gradient of the cross-entropy, summed over the examples."""
    hidden, logits = forward(weights, digits.images)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = exponentials / exponentials.sum(axis=1, keepdims=True)
    error[np.arange(len(digits.labels)), digits.labels] -= 1
    hidden_error = (error @ weights["layer2.weight"].T) * (hidden > 0)
    return {
        "layer1.weight": digits.images.T @ hidden_error,
        "layer1.bias": hidden_error.sum(axis=0),
        "layer2.weight": hidden.T @ error,
        "layer2.bias": error.sum(axis=0),
    }


def share(seed: int, step: int, index: int, workers: int, examples: int) -> Integers:
    """Which examples of this step's batch are those of the worker at ``index``."""
    batch = np.random.default_rng([seed, 2, step]).choice(examples, BATCH, replace=False)
    return np.asarray(batch[index::workers])


class Model:
    """The weights and their momentum; both change only with an aggregate."""

    def __init__(self, seed: int) -> None:
        self.weights = initial_weights(seed)
        self._velocity = {name: np.zeros_like(w) for name, w in self.weights.items()}

    def apply(self, aggregate: onefold.Aggregate) -> None:
        """Take one step; a step that was skipped leaves everything as it is."""
        if aggregate.outcome == "skipped":
            return
        for name, weight in self.weights.items():
            total = aggregate.tensors[name]
            assert isinstance(total, np.ndarray)
            # The server sums the gradients of all examples, and the weights of the updates say how
            # many those were. A sum is exact wherever its parts come from, so it also stays right
            # if a step goes ahead without a late worker; a mean of means would weigh the examples
            # of a small share more.
            gradient = total.astype(np.float32, copy=False) / np.float32(aggregate.total_weight)
            velocity = self._velocity[name]
            velocity *= np.float32(MOMENTUM)
            velocity -= np.float32(LEARNING_RATE) * gradient
            np.add(weight, velocity, out=weight)

    def accuracy(self, digits: Digits) -> float:
        """The share of images that are recognised."""
        _, logits = forward(self.weights, digits.images)
        return float(np.mean(logits.argmax(axis=1) == digits.labels))

    def digest(self) -> str:
        """SHA-256 of the weights: two models have one digest if every bit is the same."""
        hasher = hashlib.sha256()
        for name in sorted(self.weights):
            hasher.update(name.encode())
            hasher.update(np.ascontiguousarray(self.weights[name], "<f4").tobytes())
        return hasher.hexdigest()


def train(client: Reducer, digits: Digits, *, seed: int, steps: int) -> Model:
    """Train to the end, from wherever the run is."""
    model = Model(seed)
    first_open_step = min(client.joined.first_open_step, steps)
    for step in range(first_open_step):
        model.apply(client.pull(step))
    index, workers = client.joined.index, client.joined.size
    if index is None or workers is None:
        raise SystemExit("this server has no roster to share work by: give it --workers N")
    for step in range(first_open_step, steps):
        mine = share(seed, step, index, workers, len(digits.labels))
        gradient = gradient_sum(model.weights, digits.take(mine))
        model.apply(client.reduce(step, gradient, weight=len(mine)))
    return model


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=160, help="how many (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first weights and the batches (default: 0)"
    )
    return parser.parse_args(arguments)


def main() -> int:
    """Train, then print the result as one line of JSON."""
    options = parse_arguments()
    if "ONEFOLD_ADDRESS" not in os.environ:
        print(
            "ONEFOLD_ADDRESS is not set: this is one worker, and it needs a server. Start both with"
            "\n\n    onefold run --workers 4 -- python examples/digits.py\n\n"
            "or see `python examples/digits.py --help`.",
            file=sys.stderr,
        )
        return 2
    training, test = Digits.load()
    with onefold.connect() as client:
        model = train(client, training, seed=options.seed, steps=options.steps)
        result = {
            "worker": client.joined.worker,
            "accuracy": round(model.accuracy(test), 4),
            "digest": model.digest(),
        }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
