"""Objects that many programs need, and what makes a method an operation. Import them from weft.objects."""

import functools
from typing import Any, Callable, Optional


def operation(function: Optional[Callable] = None, *, read: bool = False, guard: Optional[Callable] = None):
    """Makes a method an operation: one that may change the object, or with read=True one that does not. The guard is a
    function of the same arguments, and says whether it can be done now."""
    if function is None:
        return functools.partial(operation, read=read, guard=guard)
    function._weft_operation = (read, guard)
    return function


def at_caller(function: Callable) -> Callable:
    """Makes a method one of the handle: it runs where it is called, and is made of operations."""
    function._weft_at_caller = True
    return function


class Integer:
    """A number."""

    def __init__(self, value: int = 0):
        self.number = value

    @operation(read=True)
    def value(self) -> int:
        return self.number

    @operation(read=True, guard=lambda self, least: self.number >= least)
    def await_at_least(self, least: int) -> int:
        """Waits until it has that value or a greater one, and tells which."""
        return self.number

    @operation
    def assign(self, value: int) -> int:
        """The value before."""
        before, self.number = self.number, value
        return before

    @operation
    def add(self, by: int) -> int:
        """The value after."""
        self.number += by
        return self.number

    @operation
    def lower_to(self, value: int) -> int:
        """Takes the value if that is less; the value after."""
        self.number = min(self.number, value)
        return self.number

    @operation
    def raise_to(self, value: int) -> int:
        """Takes the value if that is more; the value after."""
        self.number = max(self.number, value)
        return self.number


class JobQueue:
    """Jobs, in the order in which they came."""

    def __init__(self):
        self.jobs, self.is_closed = [], False

    @operation
    def add(self, job: Any) -> bool:
        """Adds a job, which is not None; False if no more are taken."""
        if job is None:
            raise ValueError("None is no job of a JobQueue: take() answers it when there will be no more")
        if not self.is_closed:
            self.jobs.append(job)
        return not self.is_closed

    @operation
    def close(self) -> None:
        """There will be no more jobs."""
        self.is_closed = True

    @operation(guard=lambda self: self.is_closed or self.jobs)
    def take(self) -> Any:
        """The oldest job. Waits for one; None when there will be no more."""
        return self.jobs.pop(0) if self.jobs else None

    @operation(read=True)
    def length(self) -> int:
        return len(self.jobs)


class Barrier:
    """A barrier for a number of callers: nobody passes before all have come."""

    def __init__(self, callers: int):
        self.expected, self.arrived, self.rounds = max(1, callers), 0, 0

    @operation
    def arrive(self) -> int:
        """Has come; the round that ends when all have."""
        ends = self.rounds
        self.arrived += 1
        if self.arrived == self.expected:
            self.arrived, self.rounds = 0, self.rounds + 1
        return ends

    @operation(read=True, guard=lambda self, which: self.rounds > which)
    def await_end(self, which: int) -> None:
        """Waits until a round has ended."""

    @operation(read=True)
    def callers(self) -> int:
        """For how many callers it is."""
        return self.expected

    @at_caller
    def wait(self) -> None:
        """Waits until all have called this."""
        self.await_end(self.arrive())

    def _opened(self, barrier: Any, name: str) -> None:
        """The barrier of this name that this one was shared as, whoever has created it."""
        if barrier.callers() != self.expected:
            raise ValueError(f"barrier '{name}' has {barrier.callers()} callers, not {self.expected}")


class Poll:
    """Polls by number: each is decided by a no, or when all voters have said yes."""

    def __init__(self, voters: int):
        self.voters, self.votes = voters, {}

    def _decision(self, poll: int) -> Optional[bool]:
        yes, is_refused = self.votes.get(poll, (0, False))
        return False if is_refused else True if yes >= self.voters else None

    @operation
    def vote(self, poll: int, is_yes: bool) -> bool:
        """One vote; False if the poll is decided, and the vote not counted."""
        if self._decision(poll) is not None:
            return False
        yes, is_refused = self.votes.get(poll, (0, False))
        self.votes[poll] = (yes + bool(is_yes), is_refused or not is_yes)
        return True

    @operation(read=True, guard=lambda self, poll: self._decision(poll) is not None)
    def await_decision(self, poll: int) -> bool:
        """Waits until the poll is decided."""
        return self._decision(poll)


class Bin:
    """A place for one value, which is put there and taken by turns."""

    def __init__(self):
        self.held = []

    @operation(guard=lambda self, value: not self.held)
    def put(self, value: Any) -> None:
        """Waits until the place is free, and puts the value there."""
        self.held.append(value)

    @operation(guard=lambda self: self.held)
    def take(self) -> Any:
        """Waits until there is a value, and takes it."""
        return self.held.pop()

    @operation(read=True)
    def is_empty(self) -> bool:
        return not self.held


class Table:
    """Values by their keys."""

    def __init__(self):
        self.rows = {}

    @operation
    def insert(self, key: Any, value: Any) -> Any:
        """The value before, or None."""
        before = self.rows.get(key)
        self.rows[key] = value
        return before

    @operation
    def remove(self, key: Any) -> Any:
        """The value, or None if there was none."""
        return self.rows.pop(key, None)

    @operation(read=True)
    def value(self, key: Any) -> Any:
        return self.rows.get(key)

    @operation(read=True, guard=lambda self, key: key in self.rows)
    def await_value(self, key: Any) -> Any:
        """Waits until there is a value of this key."""
        return self.rows[key]

    @operation(read=True)
    def keys(self) -> list:
        """All keys, in the order in which they came."""
        return list(self.rows)

    @operation(read=True)
    def length(self) -> int:
        return len(self.rows)


class Bag:
    """Values in no order, of which some may be equal."""

    def __init__(self):
        self.values = []

    @operation
    def add(self, value: Any) -> None:
        self.values.append(value)

    @operation(guard=lambda self: self.values)
    def take(self) -> Any:
        """Waits until there is a value, and takes one."""
        return self.values.pop()

    @operation
    def try_take(self) -> Any:
        """Takes a value if there is one, else None."""
        return self.values.pop() if self.values else None

    @operation(read=True)
    def count(self, value: Any) -> int:
        """How many are equal to this one."""
        return self.values.count(value)

    @operation(read=True)
    def length(self) -> int:
        return len(self.values)


class Set:
    """Values in their order, none twice."""

    def __init__(self):
        # Not a set, whose order is not the same in all processes.
        self.members = {}

    @operation
    def insert(self, value: Any) -> bool:
        """Whether it was not there."""
        is_new = value not in self.members
        self.members[value] = None
        return is_new

    @operation
    def remove(self, value: Any) -> bool:
        """Whether it was there."""
        return self.members.pop(value, self) is None

    @operation(guard=lambda self: self.members)
    def take_least(self) -> Any:
        """Waits until there is a value, and takes the least."""
        least = min(self.members)
        del self.members[least]
        return least

    @operation(read=True)
    def contains(self, value: Any) -> bool:
        return value in self.members

    @operation(read=True, guard=lambda self, value: value in self.members)
    def await_value(self, value: Any) -> None:
        """Waits until the value is there."""

    @operation(read=True)
    def values(self) -> list:
        """All values, in their order."""
        return sorted(self.members)

    @operation(read=True)
    def length(self) -> int:
        return len(self.members)
