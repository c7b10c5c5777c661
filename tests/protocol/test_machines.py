"""The lifecycles are well formed: nothing unreachable, nothing leaking out of a whitelist."""

import pytest

from mediaplane.protocol.lifecycle import OWNER, Lease, Machine, Step
from mediaplane.protocol.machines import MACHINES, MAX_ASSET_CLAIMS
from mediaplane.protocol.values import EventType, Plane
from mediaplane.protocol.write_paths import WRITE_PATHS

STEPS = [
    pytest.param(machine, step, id=f"{machine.name}.{step.name}")
    for machine in MACHINES
    for step in machine.steps
]
machines = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
steps = pytest.mark.parametrize(("machine", "step"), STEPS)

# The statuses in which somebody works on a row under a lease.
AT_WORK = {
    "jobs": {"running"},
    "job_items": {"running"},
    "thumbnails": {"running"},
    "thumbnail_cleanup_jobs": {"running"},
    "wal_maintenance_jobs": {"running"},
    "assets": {"extracting", "analyzing"},
}
FINAL = {
    "jobs": {"completed", "failed", "cancelled", "skipped"},
    "job_items": {"completed", "failed", "cancelled", "skipped"},
    "thumbnails": {"ready"},
    "thumbnail_cleanup_jobs": {"completed", "failed"},
    "wal_maintenance_jobs": {"completed", "failed"},
    "assets": set(),  # a changed file begins again from any end
}


@steps
def test_a_step_names_statuses_of_its_machine(machine: Machine, step: Step) -> None:
    statuses = set(machine.statuses)
    assert step.sources
    assert set(step.sources) <= statuses
    assert step.target is None or step.target in statuses


@machines
def test_every_status_can_be_reached_from_pending(machine: Machine) -> None:
    reached = {"pending"}
    for _ in machine.statuses:
        for step in machine.steps:
            if step.target and reached & set(step.sources):
                reached.add(step.target)
    assert reached == set(machine.statuses)


@machines
def test_a_row_is_born_pending(machine: Machine) -> None:
    default = machine.table.columns["status"].server_default
    assert getattr(default, "arg", None) == "pending"


@machines
def test_no_step_leaves_a_final_status(machine: Machine) -> None:
    assert set(machine.final) == FINAL[machine.name]
    left = [step.name for step in machine.steps if set(step.sources) & FINAL[machine.name]]
    assert left == []


@machines
def test_every_step_has_a_name_of_its_own(machine: Machine) -> None:
    names = [step.name for step in machine.steps]
    assert sorted(set(names)) == sorted(names)
    with pytest.raises(LookupError, match="no step 'nonsense'"):
        machine.step("nonsense")


@steps
def test_a_step_writes_columns_that_exist_and_stays_within_its_whitelist(
    machine: Machine, step: Step
) -> None:
    assert step.path.table == machine.name
    assert step.writes <= set(machine.table.columns.keys())
    assert {*step.increments, *step.sets} <= step.writes
    assert set(step.increments) & set(step.sets) == set()
    assert not step.path.inserts
    assert not step.path.deletes


@steps
def test_a_step_that_moves_a_row_may_write_its_status(machine: Machine, step: Step) -> None:
    assert step.target is None or "status" in step.writes
    assert "updated_at" in step.writes


@steps
def test_a_step_may_write_what_it_does_to_the_lease(machine: Machine, step: Step) -> None:
    needed = {
        Lease.ABSENT: frozenset[str](),
        Lease.TAKE: OWNER | {"lease_epoch"},
        Lease.KEEP: {"worker_heartbeat_at", "lease_expires_at"},
        Lease.DROP: {"worker_heartbeat_at", "lease_expires_at"},
        Lease.REAP: OWNER,
        Lease.REVOKE: OWNER,
    }[step.lease]
    assert needed <= step.writes
    if step.lease is Lease.ABSENT:
        assert step.writes & (OWNER | {"lease_epoch"}) == frozenset()


@steps
def test_a_lease_exists_exactly_while_somebody_is_at_work(machine: Machine, step: Step) -> None:
    at_work = AT_WORK[machine.name]
    match step.lease:
        case Lease.TAKE:
            assert set(step.sources) & at_work == set()
            assert step.target in at_work
        case Lease.KEEP:
            assert set(step.sources) <= at_work
            assert step.target is None
        case Lease.DROP | Lease.REAP:
            assert set(step.sources) <= at_work
            assert step.target not in at_work
        case Lease.REVOKE:
            assert set(step.sources) == set(machine.statuses) - set(machine.final)
            assert step.target in machine.final
        case Lease.ABSENT:
            assert step.target not in at_work
            assert step.target is None or set(step.sources) & at_work == set()


@steps
def test_only_the_data_plane_holds_leases(machine: Machine, step: Step) -> None:
    if step.lease in (Lease.TAKE, Lease.KEEP, Lease.DROP):
        assert step.plane is Plane.DATA
    if step.plane is Plane.DATA:
        assert step.path in WRITE_PATHS


@machines
def test_work_in_progress_can_be_kept_finished_and_recovered(machine: Machine) -> None:
    for status in AT_WORK[machine.name]:
        leases = {step.lease for step in machine.steps if status in step.sources}
        assert {Lease.KEEP, Lease.DROP, Lease.REAP} <= leases
    for plane in Plane:
        reaped = [
            step for step in machine.steps if step.lease is Lease.REAP and step.plane is plane
        ]
        assert {source for step in reaped for source in step.sources} == AT_WORK[machine.name]


@steps
def test_a_released_row_goes_back_to_where_it_was_claimed(machine: Machine, step: Step) -> None:
    if not step.name.startswith("release"):
        return
    claimed_from = {
        source
        for claim in machine.steps
        if claim.lease is Lease.TAKE and claim.target in step.sources
        for source in claim.sources
    }
    assert step.target in claimed_from
    assert step.writes >= OWNER


@steps
def test_a_due_time_is_a_column(machine: Machine, step: Step) -> None:
    assert step.due is None or step.due in machine.table.columns


@steps
def test_only_jobs_have_a_history_and_it_ends_with_done(machine: Machine, step: Step) -> None:
    is_end = step.target in FINAL[machine.name]
    if machine.name == "jobs":
        assert [event for event in step.events if event is EventType.JOB_DONE] == (
            [step.events[-1]] if is_end else []
        )
    elif machine.name == "job_items":
        assert step.events == ((EventType.ITEM_DONE,) if is_end else ())
    else:
        assert step.events == ()


@steps
def test_a_job_changes_its_status_in_front_of_its_history(machine: Machine, step: Step) -> None:
    if machine.name == "jobs" and step.target is not None:
        assert step.events != ()
    assert bool(step.says) is (EventType.LOG in step.events)


@steps
def test_an_item_is_counted_once_by_the_step_that_ends_it(machine: Machine, step: Step) -> None:
    counted = {
        "completed": {"completed_items"},
        "failed": {"failed_items"},
        "cancelled": {"cancelled_items"},
        # Nothing was left to do, which is as good as done.
        "skipped": {"skipped_items", "completed_items"},
    }
    is_end = machine.name == "job_items" and step.target in FINAL["job_items"]
    assert sorted(step.counts) == (sorted(counted[str(step.target)]) if is_end else [])


def test_only_the_items_of_a_job_are_revoked_by_either_plane() -> None:
    revoking = [
        (machine.name, step.plane)
        for machine in MACHINES
        for step in machine.steps
        if step.lease is Lease.REVOKE
    ]
    assert sorted(revoking) == [("job_items", plane) for plane in sorted(Plane)]


@machines
def test_the_whitelists_of_one_name_are_one_whitelist(machine: Machine) -> None:
    by_name = {step.path.name: step.path for step in machine.steps}
    assert all(by_name[step.path.name] == step.path for step in machine.steps)


def test_an_asset_is_given_up_after_five_claims() -> None:
    assert MAX_ASSET_CLAIMS == 5
