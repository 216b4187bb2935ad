"""What must be true whatever happens: the guarantees, checked against dictionaries and Fractions.

The model is told what workers mean to contribute, what arrives at the server, what the server
answers, and what each step closed with. It keeps for each (step, worker) the newest sending that
the server has said stands, for each worker the newest incarnation that a join has given, and for
each closed step its contributors and bits. It knows nothing of how the server decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from onefold.aggregate import Aggregate
from onefold.ledger import Contributor, Joined
from onefold.policy import Policy
from onefold.receipt import Receipt, Status
from onefold.simulation.contents import Content, Sums, expected, sums_of
from onefold.wire import Answer, Closed, Command, Commit, Join, Leave, Pull, Put, Resend

__all__ = ["Model", "Violation"]

Order = tuple[int, int]
"""(incarnation, attempt): by what "last" is decided."""


class Violation(Exception):
    """A guarantee has been broken; ``guarantee`` is which."""

    def __init__(self, guarantee: str, message: str) -> None:
        super().__init__(f"{guarantee}: {message}")
        self.guarantee = guarantee


@dataclass(frozen=True, slots=True)
class _Closed:
    """What a step closed with; ``sums`` is None if it was skipped, or pruned before it was seen."""

    outcome: str
    contributors: tuple[Contributor, ...]
    excluded: tuple[str, ...]
    sums: str | None


@dataclass(slots=True)
class Model:
    """What is known of a run from outside.

    Attributes:
        policy: The aggregator's.
        contents: What each worker meant to contribute to a step, by the digest of it.
        arrived_digests: What arrived as (step, worker, incarnation, attempt).
        stands: The newest sending that the server has said stands, and no power cut has undone.
        newest: The newest incarnation that a join has given to a worker.
        lives: The incarnation of each life.
        closed: What steps closed with.
    """

    policy: Policy
    contents: dict[tuple[int, str, str], Content] = field(default_factory=dict)
    arrived_digests: dict[tuple[int, str, Order], str] = field(default_factory=dict)
    stands: dict[tuple[int, str], Order] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    closed: dict[int, _Closed] = field(default_factory=dict)
    _opened_at: dict[int, float] = field(default_factory=dict)
    _joined: dict[str, None] = field(default_factory=dict)
    _ever_left: set[str] = field(default_factory=set)
    _follows: dict[str, float] = field(default_factory=dict)
    _came: dict[str, set[str]] = field(default_factory=dict)
    _by_hand: set[int] = field(default_factory=set)

    # What happens.

    def means(self, step: int, worker: str, content: Content, digest: str) -> None:
        """A worker is about to push this."""
        self.contents[step, worker, digest] = content

    def arrived(self, command: Command, clock: float) -> None:
        """The server has a command before it, at ``clock`` by its own."""
        if isinstance(command, Leave):
            self._ever_left.add(command.worker)
        if isinstance(command, Join):
            self._came.setdefault(command.worker, set()).add(command.life)
            after = math.inf if command.after is None else command.after
            self._follows[command.life] = max(after, self._follows.get(command.life, after))
        if not isinstance(command, Put | Commit) or command.manifest is None:
            return
        self._opened_at[command.step] = min(clock, self._opened_at.get(command.step, clock))
        who = (command.step, command.worker, (command.incarnation, command.attempt))
        self.arrived_digests.setdefault(who, command.manifest.digest)

    def closes(self, step: int) -> None:
        """An operator closes a step with what is there."""
        self._by_hand.add(step)

    def answered(self, command: Command, answer: Answer) -> None:
        """The server answers."""
        match command, answer:
            case Join(), Joined():
                self._check_join(command, answer)
            case ((Put() | Commit()), Receipt()):
                self._check_receipt(answer)
            case Pull(), Closed(closed):
                known = self.closed.get(closed.step)
                if known is not None and known.contributors != closed.contributors:
                    raise Violation(
                        "Durable before visible", f"step {closed.step} had {known}, {closed}"
                    )
            case Pull(), Resend():
                if command.step in self.closed:
                    raise Violation(
                        "Told", f"step {command.step} has closed, and is asked for again"
                    )

    def lost_power(self) -> None:
        """What had not been synced may be gone."""
        if not self.policy.sync_each_push:
            self.stands = {}

    def step_closed(self, aggregate: Aggregate, closed_at: float) -> None:
        """A step has closed, or is seen again as it closed."""
        step = aggregate.step
        seen = _Closed(
            outcome=aggregate.outcome,
            contributors=aggregate.contributors,
            excluded=tuple(excluded.worker for excluded in aggregate.excluded),
            sums=repr(sums_of(dict(aggregate.tensors))) if aggregate.tensors else None,
        )
        known = self.closed.setdefault(step, seen)
        if None in (known.sums, seen.sums):  # pruned
            seen = replace(seen, sums=known.sums)
        if known != seen:
            raise Violation("Durable before visible", f"step {step} was {known} and now is {seen}")
        self._check_contributors(step, seen)
        self._check_nobody_is_missing(step, seen)
        self._check_was_due(step, seen, closed_at)
        if seen.outcome == "update":
            self._check_sums(step, seen)

    def pulled(self, aggregate: Aggregate) -> None:
        """A client has received an aggregate."""
        known = self.closed[aggregate.step]
        sums = repr(sums_of(dict(aggregate.tensors))) if aggregate.tensors else None
        if (known.contributors, known.sums) != (aggregate.contributors, sums):
            raise Violation("Exact", f"step {aggregate.step} is {known}, a client received {sums}")

    def fenced(self, worker: str, incarnation: int) -> None:
        """A client has been told that its life is over."""
        others = self._came.get(worker, set()) - set(self.lives)  # joined, as far as is known
        if not others and self.newest.get(worker, 0) <= incarnation:
            raise Violation(
                "Told", f"{worker} is told that incarnation {incarnation} is over; it is not"
            )

    def standing_open(self) -> list[tuple[tuple[int, str], Order]]:
        """What stands, as the server has said, of steps that have not closed."""
        return [(who, order) for who, order in self.stands.items() if who[0] not in self.closed]

    # What must then be true.

    def _check_join(self, command: Join, joined: Joined) -> None:
        newest, follows = self.newest.get(command.worker, 0), self._follows[command.life]
        if joined.incarnation > newest > follows:
            what = f"{command.life} joins after {follows}, but {newest} has joined since"
            raise Violation("Once", what)
        incarnation = self.lives.setdefault(command.life, joined.incarnation)
        if incarnation != joined.incarnation:
            raise Violation(
                "Once",
                f"life {command.life} had incarnation {incarnation}, then {joined.incarnation}",
            )
        others = [
            life
            for life, known in self.lives.items()
            if known == incarnation
            and life != command.life
            and life.startswith(f"{command.worker}/")
        ]
        if others:
            raise Violation(
                "Once", f"lives {command.life} and {others} are both incarnation {incarnation}"
            )
        self.newest[command.worker] = max(self.newest.get(command.worker, 0), incarnation)
        self._joined[command.worker] = None

    def _check_receipt(self, receipt: Receipt) -> None:
        order = (receipt.incarnation or 0, receipt.attempt or 0)
        where = f"step {receipt.step}, {receipt.worker} {order}: {receipt.status}"
        if receipt.status in (Status.OTHER_RUN, Status.CONFLICT, Status.MISMATCH):
            raise Violation("Told", f"{where}, and no client of this run gives a reason for it")
        if receipt.status is Status.FENCED:
            self.fenced(receipt.worker, order[0])
        if receipt.status is Status.CLOSED:
            self._check_closed_receipt(receipt, order, where)
        if receipt.status is Status.SUPERSEDED and not any(
            step == receipt.step and worker == receipt.worker and newer > order
            for step, worker, newer in self.arrived_digests
        ):
            raise Violation("Told", f"{where}, and nothing newer has ever arrived")
        if receipt.stands and receipt.status is not Status.CLOSED:
            self._check_standing(receipt, order, where)

    def _check_standing(self, receipt: Receipt, order: Order, where: str) -> None:
        if receipt.step in self.closed:
            raise Violation("Durable before visible", f"{where}, but the step has closed")
        if order[0] < self.newest.get(receipt.worker, 0):
            raise Violation(
                "Once", f"{where}, but {self.newest[receipt.worker]} is its newest incarnation"
            )
        who = (receipt.step, receipt.worker)
        if order < self.stands.get(who, order):
            raise Violation("Once", f"{where}, but {self.stands[who]} stood")
        self.stands[who] = order

    def _check_closed_receipt(self, receipt: Receipt, order: Order, where: str) -> None:
        known = self.closed.get(receipt.step)
        if known is None:
            if receipt.counted:
                raise Violation("Told", f"{where}, counted, but the step has not closed")
            return
        is_in = any(
            (c.worker, (c.incarnation, c.attempt), c.digest)
            == (receipt.worker, order, receipt.digest)
            for c in known.contributors
        )
        if is_in != bool(receipt.counted):
            raise Violation(
                "Told", f"{where}, counted={receipt.counted}, but contributors are {known}"
            )

    def _check_contributors(self, step: int, closed: _Closed) -> None:
        names = [c.worker for c in closed.contributors]
        if len(set(names)) != len(names) or set(names) & set(closed.excluded):
            raise Violation("Once", f"step {step} lists a worker twice: {names}, {closed.excluded}")
        for one in closed.contributors:
            order = (one.incarnation or 0, one.attempt or 0)
            if self.arrived_digests.get((step, one.worker, order)) != one.digest:
                raise Violation("Whole", f"step {step} has {one}, which was never sent so")
            if order < self.stands.get((step, one.worker), order):
                stood = self.stands[step, one.worker]
                raise Violation("Once", f"step {step} has {one}, although {stood} stood")

    def _check_nobody_is_missing(self, step: int, closed: _Closed) -> None:
        names = {c.worker for c in closed.contributors}
        told = names | set(closed.excluded)
        for worker in sorted(set(self.policy.names or ()) - self._ever_left - told):
            raise Violation("Told", f"step {step} does not say why it lacks {worker}")
        for (at, worker), order in self.stands.items():
            if at == step and worker not in told:
                raise Violation(
                    "Told", f"step {step} does not mention {worker}, whose {order} stood"
                )
            is_out = at == step and worker not in names and closed.outcome == "update"
            if is_out and self._is_heavy(step, worker, order):
                raise Violation("Once", f"step {step} lacks {worker}, whose {order} stood")

    def _check_was_due(self, step: int, closed: _Closed, closed_at: float) -> None:
        """A step closes when all that it waits for have contributed, or late with enough."""
        policy = self.policy
        if step in self._by_hand or policy.roster == "joined":
            return  # who was a member when it opened is not known from outside
        contributed = {worker for at, worker, _ in self.arrived_digests if at == step}
        missing = set(policy.names or self._joined) - self._ever_left - contributed
        if policy.seats is not None and len(self._joined) < policy.seats:
            missing.add("a seat that is vacant")
        if not missing:
            return
        what = f"step {step} closed as {closed}, without {sorted(missing)}"
        if policy.deadline_seconds is None or policy.minimum is None:
            raise Violation("Once", f"{what}, and there is no deadline")
        if closed_at < self._opened_at[step] + policy.deadline_seconds:
            raise Violation("Once", f"{what}, before its deadline")
        if len(contributed) < policy.minimum:
            raise Violation("Once", f"{what}, fewer than the minimum")

    def _is_heavy(self, step: int, worker: str, order: Order) -> bool:
        """Whether what can be the newest sending has a weight above 0 (weight 0 selects out).

        It may be a newer one than that of which the worker has been told.
        """
        return all(
            self.contents[step, worker, digest].weight > 0
            for (at, who, newer), digest in self.arrived_digests.items()
            if (at, who) == (step, worker) and newer >= order
        )

    def _check_sums(self, step: int, closed: _Closed) -> None:
        contents = []
        for one in closed.contributors:
            content = self.contents.get((step, one.worker, one.digest))
            if content is None or content.weight != one.weight:
                raise Violation("Whole", f"step {step} has {one}, but the worker meant {content}")
            contents.append(content)
        sums: Sums = expected(contents, self.policy.operation)
        if closed.sums is not None and closed.sums != repr(sums):
            raise Violation(
                "Exact", f"step {step} is {closed.sums}, expected {sums!r} of {contents}"
            )
