"""Real aggregators, with real numbers, driven through what happens in a small world.

:func:`drive` goes a way with the model beside a system: :class:`InProcess` is an aggregator,
:class:`Dispatched` the same behind commands and answers as bytes, all but the sockets. What a step
sums is compared bit by bit with Fractions.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Protocol

import numpy as np
from small_explorer import Closes, Event, Joins, Leaves, Loses, Waits
from small_model import DEADLINE_HALVES, End, Model, Sent

from onefold.aggregator import Aggregator
from onefold.errors import NotYet
from onefold.ledger import Joined
from onefold.parts import Payload, encode, manifest_of
from onefold.policy import Policy
from onefold.receipt import Receipt
from onefold.server.dispatch import Dispatcher
from onefold.testing.support import Clock, pairs, sparse
from onefold.update import Tensor, Update
from onefold.wire import (
    Answer,
    Closed,
    Command,
    Commit,
    Get,
    Join,
    Open,
    Pull,
    Put,
    Resend,
    Staged,
    decode_answer,
    decode_command,
    encode_answer,
    encode_command,
)

VALUES = (1e16, 1.0, -1e16, 0.1, 2.0**-1074, -1.0, 3e-17)
"""Of these most sums are wrong in any order but by exact arithmetic."""


@cache
def numbers(sent: Sent) -> tuple[tuple[float, ...], tuple[tuple[int, float], ...]]:
    """The dense values of a message, and its entries: some coordinates are shared, some cancel."""
    first = ord(sent.worker) + 2 * sent.step + 3 * (sent.attempt or 0) + 5 * (sent.content == "y")
    values = [VALUES[(first + number) % len(VALUES)] for number in range(2 * sent.shape + 1)]
    sign = -1.0 if sent.worker == "b" else 1.0
    entries = ((7, sign * 1e16), (first % 3, values[0]), (7, values[1]), (5, sign))
    if sent.nonfinite:
        values[0] = float("nan")
    return tuple(values), entries


@cache
def update_of(sent: Sent, *, is_sparse: bool) -> Update:
    """A message as an update."""
    dense, entries = numbers(sent)
    tensors: dict[str, Tensor] = {"d": np.array(dense)}
    if is_sparse:
        tensors["s"] = sparse(*entries)
    return Update(tensors, sent.weight)


@cache
def exact(counted: tuple[Sent, ...], operation: str) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The bytes of the dense result, and each coordinate with those of its value."""
    weight = {one: one.weight if operation == "weighted_mean" else 1 for one in counted}
    divisor = 1 if operation == "sum" else sum(weight.values())
    columns = zip(*(numbers(one)[0] for one in counted), strict=True)
    dense = [
        sum(Fraction(value) * weight[one] for value, one in zip(column, counted, strict=True))
        for column in columns
    ]
    sums: dict[int, Fraction] = {}
    for one in counted:
        for coordinate, value in numbers(one)[1]:
            sums[coordinate] = sums.get(coordinate, Fraction()) + Fraction(value) * weight[one]
    entries = [(c, np.float64(float(sums[c] / divisor)).tobytes()) for c in sorted(sums)]
    return np.array([float(total / divisor) for total in dense]).tobytes(), entries


@dataclass(frozen=True)
class Result:
    """What is read of a closed step."""

    outcome: str
    counted: tuple[tuple[object, ...], ...]
    excluded: tuple[tuple[str, str], ...]
    tensors: dict[str, object]


class System(Protocol):
    """What a way is driven through."""

    aggregator: Aggregator
    is_sparse: bool

    def push(self, sent: Sent) -> Receipt:
        """The receipt of a message."""

    def join(self, worker: str, life: str) -> Joined:
        """The answer to a join."""

    def result(self, step: int, model: Model) -> Result | None:
        """What a step closed with; None if it has not."""


class InProcess:
    """An aggregator in memory."""

    def __init__(self, policy: Policy, *, is_sparse: bool = True) -> None:
        self.clock = Clock()
        self.aggregator = Aggregator(policy=policy, clock=self.clock)
        self.is_sparse = is_sparse

    def push(self, sent: Sent) -> Receipt:
        """The receipt of a message."""
        update = update_of(sent, is_sparse=self.is_sparse)
        return self.aggregator.push(
            sent.step, sent.worker, update, attempt=sent.attempt, incarnation=sent.incarnation
        )

    def join(self, worker: str, life: str) -> Joined:
        """The answer to a join."""
        return self.aggregator.join(worker, life)

    def result(self, step: int, model: Model) -> Result | None:  # noqa: ARG002 - for the others
        """What a step closed with; None if it has not."""
        try:
            aggregate = self.aggregator.pull(step)
        except NotYet:
            return None
        return _result(aggregate, aggregate.tensors)


class Dispatched(InProcess):
    """The same behind commands and answers, each of them to bytes and back."""

    def __init__(self, policy: Policy, *, is_sparse: bool = True) -> None:
        super().__init__(policy, is_sparse=is_sparse)
        self.dispatcher = Dispatcher(self.aggregator, threading.Event())
        self.kept: dict[tuple[int, str], Sent] = {}

    def push(self, sent: Sent) -> Receipt:
        """A small update goes with its first part; of a larger one the parts are committed."""
        update = update_of(sent, is_sparse=self.is_sparse)
        parts = [(schema, list(batches)) for schema, batches in encode(update)]
        who = (self.aggregator.run, sent.worker, sent.incarnation or 0, sent.step)
        sending = (*who, sent.attempt or 0)
        self.kept[sent.step, sent.worker] = sent
        if len(parts) == 1:
            put = Put(*sending, manifest=manifest_of(update, [""]))
            answer = self.dispatcher.put(_arrived(put), *parts[0])
            return _answered(answer, Receipt)
        names = []
        for number, part in enumerate(parts):
            answer = self.dispatcher.put(_arrived(Put(*sending, part=number)), *part)
            names.append(_answered(answer, Staged).part)
        commit = Commit(*sending, manifest=manifest_of(update, names))
        return _answered(self.dispatcher.act(_arrived(commit)), Receipt)

    def join(self, worker: str, life: str) -> Joined:
        """The answer to a join."""
        return _answered(self.dispatcher.act(_arrived(Join(worker, life))), Joined)

    def result(self, step: int, model: Model) -> Result | None:
        """Each who pushed asks; all get the same, and who has to send again is told."""
        answers = [self._pulled(step, sent, model) for sent in self._senders(step)]
        assert all(answer == answers[0] for answer in answers)
        if not answers or answers[0] is None:
            return None
        closed, manifest = answers[0].closed, answers[0].manifest
        if manifest is None:
            return _result(closed, {})
        parts = []
        for number, name in enumerate(manifest.parts):
            get = Get(self.aggregator.run, "a", 0, step, number, name)
            parts.append(self.dispatcher.get(_arrived(get))[1])
        payload = Payload(manifest, parts)
        payload.verify()
        return _result(closed, payload.update().tensors)

    def _senders(self, step: int) -> list[Sent]:
        return [sent for (of, _), sent in sorted(self.kept.items()) if of == step]

    def _pulled(self, step: int, sent: Sent, model: Model) -> Closed | None:
        who = (self.aggregator.run, sent.worker, sent.incarnation or 0, step)
        pull = _arrived(Pull(*who, attempt=sent.attempt, wait_seconds=0.0))
        answer = self.dispatcher.act(pull)
        answer = decode_answer(encode_answer(answer), type(answer))
        if isinstance(answer, Closed):
            return answer
        opened = model.open.get(step)
        standing = opened.stands.get(sent.worker) if opened else None
        stands = standing is not None and standing.order >= sent.order
        assert isinstance(answer, Open if stands else Resend)
        return None


def drive(system: System, policy: Policy, events: Iterable[Event]) -> Model:
    """Go a way with the model beside the system; what is due closes by itself."""
    model = Model(policy)
    read: dict[int, Result] = {}
    for event in events:
        model = _happen(system, model, event, read)
        for step in model.due():
            end, model = model.end(step), model.closes(step)
            _read(system, model, step, end, read)
        for step in model.open:
            assert system.result(step, model) is None
    for step, before in read.items():
        assert system.result(step, model) == before
    return model


def _happen(system: System, model: Model, event: Event, read: dict[int, Result]) -> Model:
    match event:
        case Sent():
            answer = model.answer(event)
            receipt = system.push(event)
            assert (receipt.status, receipt.counted, receipt.counted_as) == tuple(answer), receipt
            assert receipt.reason
            return model.pushed(event, answer.status)
        case Joins():
            after = model.joins(*event)
            assert system.join(*event).incarnation == after.lives[event]
            return after
        case Leaves():
            system.aggregator.leave(*event)
            return model.leaves(*event)
        case Closes(step) if step in model.open:
            system.aggregator.close(step)
            end, after = model.end(step), model.closes(step)
            _read(system, after, step, end, read)
            return after
        case Waits():
            seconds = model.policy.deadline_seconds or 0
            system.clock.advance(seconds / DEADLINE_HALVES)
            system.aggregator.tick()
            return model.waits()
        case Loses():
            raise NotImplementedError("numbers are lost in another test")
    return model  # it was due, and closed by itself


def _read(system: System, model: Model, step: int, end: End, read: dict[int, Result]) -> None:
    """Hold what a step closed with against the model and the exact numbers."""
    assert step not in read
    result = system.result(step, model)
    assert result is not None
    digests = [update_of(one, is_sparse=system.is_sparse).digest() for one in end.counted]
    assert result.outcome == end.outcome
    assert list(result.counted) == [
        (one.worker, one.incarnation, one.attempt, one.weight, digest)
        for one, digest in zip(end.counted, digests, strict=True)
    ]
    assert [worker for worker, _ in result.excluded] == sorted(end.excluded)
    assert all(reason for _, reason in result.excluded)
    if end.counted:
        dense, entries = exact(end.counted, model.policy.operation)
        assert result.tensors == {"d": dense} | ({"s": entries} if system.is_sparse else {})
    else:
        assert not result.tensors
    read[step] = result


def _result(closed: object, tensors: object) -> Result:
    bits: dict[str, object] = {}
    for name, tensor in tensors.items():
        bits[name] = (
            tensor.tobytes()
            if isinstance(tensor, np.ndarray)
            else [(c, np.float64(value).tobytes()) for c, value in pairs(tensor)]
        )
    return Result(
        closed.outcome,
        tuple(
            (c.worker, c.incarnation, c.attempt, c.weight, c.digest) for c in closed.contributors
        ),
        tuple((one.worker, one.reason) for one in closed.excluded),
        bits,
    )


def _arrived(command: Command) -> Command:
    """A command as the server reads it."""
    arrived = decode_command(encode_command(command))
    assert arrived == command
    return arrived


def _answered(answer: Answer, expected: type) -> object:
    """An answer as the client reads it."""
    arrived = decode_answer(encode_answer(answer), expected)
    assert arrived == answer
    return arrived


def sequences(messages: Sequence[Sent], times: int, length: int) -> list[tuple[Sent, ...]]:
    """Every order of so many messages, of which each may come so many times.

    Their beginnings are all the shorter orders: no message that is lost is left out either.
    """
    found: list[tuple[Sent, ...]] = []

    def go_on(so_far: tuple[Sent, ...]) -> None:
        if len(so_far) == length:
            found.append(so_far)
            return
        for one in messages:
            if so_far.count(one) < times:
                go_on((*so_far, one))

    go_on(())
    return found


def main() -> None:
    """Go through every order of four messages that come twice each, in both systems."""
    policy = Policy(roster=["a", "b"])
    for system in (InProcess, Dispatched):
        for steps, attempts, is_sparse in (([1], [1, 2], True), ([1, 2], [1], False)):
            messages = [Sent(w, s, a, 1) for w in "ab" for s in steps for a in attempts]
            orders = sequences(messages, times=2, length=8)
            for order in orders:
                drive(system(policy, is_sparse=is_sparse), policy, order)
            what = f"{len(steps)} steps, {len(attempts)} attempts, {len(orders)} orders"
            sys.stdout.write(f"{system.__name__}: {what}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
