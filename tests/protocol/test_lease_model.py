"""Every history that leases can have, up to a few claims: explored one by one on a small model.

The model has one row and three worker processes, two of which share a worker id, as a name that
is reused does. It reads the steps from machines.py. A due time or a condition of a step may hold
or not: the model takes both roads. No process ever forgets a claim, so it may act on any of them
at any later moment, however long it stalled in between.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from mediaplane.protocol.lifecycle import Lease, Machine, Step
from mediaplane.protocol.machines import MACHINES

machines = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)

MAX_CLAIMS = 5
THEFT = "a write is taken from who does not hold the lease"
# Process → its worker id.
PROCESSES = {"first": "worker-1", "namesake": "worker-1", "stranger": "worker-2"}


@dataclass(frozen=True)
class State:
    """What the row says, who made which claim, and whose the row is in truth."""

    status: str = "pending"
    worker: str | None = None
    lease: str = "none"  # or valid, or expired
    claims: tuple[str, ...] = ()  # the process of each claim; their number is the epoch
    holder: int | None = None  # the epoch of the claim that was neither ended nor taken away
    ends: int = 0  # how often the row entered a final status

    @property
    def epoch(self) -> int:
        return len(self.claims)


@dataclass(frozen=True)
class Move:
    """One thing that happens, and for the steps of an owner, to which claim it belongs."""

    name: str
    process: str | None = None
    claim: int | None = None


# Whether a row takes the write of an owner: its own worker id and epoch are given.
Guard = Callable[[State, str, int], bool]
Edge = tuple[Move, State]


class Violation(Exception):
    """The moves that lead to a state which must not be."""

    def __init__(self, rule: str, moves: list[Move]) -> None:
        super().__init__(f"{rule}: {' → '.join(move.name for move in moves)}")
        self.rule = rule
        self.moves = moves


def fenced(state: State, worker: str, epoch: int) -> bool:
    return state.worker == worker and state.epoch == epoch


def by_worker_id_alone(state: State, worker: str, _epoch: int) -> bool:
    return state.worker == worker


def moves(machine: Machine, state: State, guard: Guard) -> Iterator[Edge]:
    """Everything that can happen next."""
    if state.lease == "valid":
        yield Move("time passes"), replace(state, lease="expired")
    for step in (step for step in machine.steps if state.status in step.sources):
        if step.lease is Lease.TAKE and state.epoch < MAX_CLAIMS:
            yield from ((Move(step.name, p), claimed(step, state, p)) for p in PROCESSES)
        elif step.lease in (Lease.KEEP, Lease.DROP):
            for number, process in enumerate(state.claims, start=1):
                if guard(state, PROCESSES[process], number):
                    yield Move(step.name, process, number), owned(machine, step, state)
        elif step.lease is Lease.REVOKE or (step.lease is Lease.REAP and state.lease != "valid"):
            yield Move(step.name), taken_away(machine, step, state)
        elif step.lease is Lease.ABSENT:
            yield Move(step.name), entered(machine, step, state)


def entered(machine: Machine, step: Step, state: State) -> State:
    ends = state.ends + (step.target in machine.final)
    return replace(state, status=step.target or state.status, ends=ends)


def claimed(step: Step, state: State, process: str) -> State:
    claims = (*state.claims, process)
    return replace(
        state,
        status=str(step.target),
        worker=PROCESSES[process],
        lease="valid",
        claims=claims,
        holder=len(claims),
    )


def owned(machine: Machine, step: Step, state: State) -> State:
    if step.lease is Lease.KEEP:
        return replace(state, lease="valid")
    worker = None if step.name.startswith("release") else state.worker
    return replace(entered(machine, step, state), worker=worker, lease="none", holder=None)


def taken_away(machine: Machine, step: Step, state: State) -> State:
    return replace(entered(machine, step, state), worker=None, lease="none", holder=None)


def explore(machine: Machine, guard: Guard) -> dict[State, list[Edge]]:
    """Visit every reachable state, nearest first; raise on the first that breaks a rule."""
    legal = {(source, step.target) for step in machine.steps for source in step.sources}
    start = State()
    came_by: dict[State, tuple[State, Move] | None] = {start: None}
    graph: dict[State, list[Edge]] = {}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        graph[state] = list(moves(machine, state, guard))
        for move, following in graph[state]:
            if rule := broken_rule(machine, legal, state, move, following):
                raise Violation(rule, [*path_to(state, came_by), move])
            if following not in came_by:
                came_by[following] = (state, move)
                waiting.append(following)
    return graph


def path_to(state: State, came_by: dict[State, tuple[State, Move] | None]) -> list[Move]:
    path: list[Move] = []
    while step := came_by[state]:
        state, move = step
        path.insert(0, move)
    return path


def broken_rule(
    machine: Machine, legal: set[tuple[str, str | None]], state: State, move: Move, after: State
) -> str | None:
    """The rule that a move breaks, if any."""
    has_moved = state.status != after.status
    broken = {
        THEFT: move.claim is not None and move.claim != state.holder,
        "the status changes where no step leads": has_moved
        and (state.status, after.status) not in legal,
        "a row changes after its end": state.status in machine.final and state != after,
        "a row ends twice": after.ends > 1,
        "the epoch falls": after.epoch < state.epoch,
        "a lease without a holder": (after.holder is None) != (after.lease == "none"),
    }
    return next((rule for rule, is_broken in broken.items() if is_broken), None)


def is_stuck(machine: Machine, state: State) -> bool:
    """Whether a row stays where it is for ever when nobody who claimed it is heard of again."""
    claimable = {s for step in machine.steps if step.lease is Lease.TAKE for s in step.sources}
    seen, waiting = {state}, [state]
    while waiting:
        one = waiting.pop()
        if one.status in claimable or one.status in machine.final:
            return False
        for move, following in moves(machine, one, fenced):
            if move.process is None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return True


def test_no_history_of_any_machine_breaks_a_rule() -> None:
    graphs = {machine.name: explore(machine, fenced) for machine in MACHINES}
    states = {name: len(graph) for name, graph in graphs.items()}
    moves_seen = sum(len(edges) for graph in graphs.values() for edges in graph.values())
    sys.stdout.write(f"{sum(states.values())} states ({states}), {moves_seen} moves\n")
    assert min(states.values()) > 1_000
    assert sum(states.values()) > 15_000


@machines
def test_the_exploration_leaves_out_nothing(machine: Machine) -> None:
    graph = explore(machine, fenced)
    assert {after for edges in graph.values() for _move, after in edges} <= graph.keys()
    assert {state.status for state in graph} == set(machine.statuses)
    taken = {move.name for edges in graph.values() for move, _after in edges}
    assert taken == {step.name for step in machine.steps} | {"time passes"}
    # Every way in which the processes can take turns.
    for count in range(MAX_CLAIMS + 1):
        turns = {state.claims for state in graph if state.epoch == count}
        assert len(turns) == len(PROCESSES) ** count


@machines
def test_an_owner_that_is_late_and_still_holds_the_lease_is_let_in(machine: Machine) -> None:
    late = [
        move
        for state, edges in explore(machine, fenced).items()
        for move, _after in edges
        if state.lease == "expired" and move.claim is not None
    ]
    assert late != []


@machines
def test_a_row_whose_workers_are_gone_gets_on(machine: Machine) -> None:
    assert [state for state in explore(machine, fenced) if is_stuck(machine, state)] == []


@machines
def test_with_the_worker_id_alone_an_earlier_claim_gets_in(machine: Machine) -> None:
    with pytest.raises(Violation) as found:
        explore(machine, by_worker_id_alone)
    assert found.value.rule == THEFT
    first, _ended, second, stale = found.value.moves  # and nothing shorter goes wrong
    assert (first.process, first.name.split("_")[0]) == (stale.process, "claim")
    assert (second.name.split("_")[0], stale.claim) == ("claim", 1)


@machines
def test_without_recovery_a_row_whose_worker_is_gone_is_stuck(machine: Machine) -> None:
    steps = tuple(s for s in machine.steps if s.lease not in (Lease.REAP, Lease.REVOKE))
    crippled = replace(machine, steps=steps)
    assert any(is_stuck(crippled, state) for state in explore(crippled, fenced))
