"""What the data plane may write, column by column, written out again and compared."""

import pytest

from mediaplane.protocol.lifecycle import Lease, WritePath
from mediaplane.protocol.machines import MACHINES
from mediaplane.protocol.tables import metadata
from mediaplane.protocol.values import Plane
from mediaplane.protocol.write_paths import WRITE_PATHS

# The whitelists of the protocol's first tables. A claim also raises `lease_epoch`: see EPOCH.
UPDATES = {
    "jobs.claim": "status worker_id worker_heartbeat_at lease_expires_at started_at updated_at",
    "jobs.heartbeat": "processed_items progress worker_heartbeat_at lease_expires_at updated_at",
    "jobs.finish": "status progress error_code error_message finished_at worker_heartbeat_at"
    " lease_expires_at updated_at",
    "thumbnails.claim": "status worker_id worker_heartbeat_at lease_expires_at started_at"
    " updated_at",
    "thumbnails.heartbeat": "worker_heartbeat_at lease_expires_at updated_at",
    "thumbnails.finish_success": "status width height bytes_size error_code error_message"
    " error_count retry_after finished_at worker_heartbeat_at lease_expires_at updated_at",
    "thumbnails.finish_failure": "status error_code error_message error_count retry_after"
    " finished_at worker_heartbeat_at lease_expires_at updated_at",
    "thumbnail_cleanup_jobs.claim": "status worker_id worker_heartbeat_at lease_expires_at"
    " finished_at updated_at",
    "thumbnail_cleanup_jobs.finish": "status error_code error_message finished_at"
    " worker_heartbeat_at lease_expires_at updated_at",
    "io_rate_limits.reserve": "next_available_at_ms updated_at",
    "wal_maintenance_jobs.claim": "status worker_id worker_heartbeat_at lease_expires_at"
    " started_at updated_at finished_at",
    "wal_maintenance_jobs.retryable_recovery": "status retry_count retry_after worker_id"
    " worker_heartbeat_at lease_expires_at error_code error_message finished_at updated_at",
    "wal_maintenance_jobs.success": "status checkpoint_busy checkpoint_log_frames"
    " checkpointed_frames error_code error_message finished_at worker_heartbeat_at"
    " lease_expires_at updated_at",
    "wal_maintenance_jobs.retry": "status retry_count retry_after checkpoint_busy"
    " checkpoint_log_frames checkpointed_frames error_code error_message finished_at"
    " worker_heartbeat_at lease_expires_at updated_at",
    "wal_maintenance_jobs.failure": "status error_code error_message finished_at"
    " worker_heartbeat_at lease_expires_at updated_at",
}

# The claims, and nothing else, write the epoch too.
EPOCH = {
    "jobs.claim",
    "thumbnails.claim",
    "thumbnail_cleanup_jobs.claim",
    "wal_maintenance_jobs.claim",
}

# What leases need beyond that, and the tables that came later.
FURTHER_UPDATES = {
    # A stale job is put back with an error and without an owner; a stopping worker gives back.
    "jobs.recover": "status worker_id worker_heartbeat_at lease_expires_at error_code"
    " error_message updated_at",
    "jobs.release": "status worker_id worker_heartbeat_at lease_expires_at started_at updated_at",
    # Without a heartbeat, long work would be taken for dead.
    "thumbnail_cleanup_jobs.heartbeat": "worker_heartbeat_at lease_expires_at updated_at",
    "wal_maintenance_jobs.heartbeat": "worker_heartbeat_at lease_expires_at updated_at",
    "job_items.claim": "status worker_id worker_heartbeat_at lease_expires_at lease_epoch"
    " started_at updated_at",
    "job_items.heartbeat": "processed_items processed_bytes worker_heartbeat_at lease_expires_at"
    " updated_at",
    "job_items.finish": "status processed_items processed_bytes message finished_at"
    " worker_heartbeat_at lease_expires_at updated_at",
    "job_items.release": "status worker_id worker_heartbeat_at lease_expires_at started_at"
    " updated_at",
    # No item outlives its job: who ends the job closes what is left of it.
    "job_items.close": "status worker_id worker_heartbeat_at lease_expires_at finished_at"
    " updated_at",
    # Written with the item whose end they count.
    "jobs.count_items": "completed_items failed_items skipped_items cancelled_items progress_at"
    " updated_at",
    "assets.claim": "status worker_id worker_heartbeat_at lease_expires_at lease_epoch"
    " retry_count updated_at",
    "assets.heartbeat": "worker_heartbeat_at lease_expires_at updated_at",
    "assets.finish": "status error_code error_message worker_heartbeat_at lease_expires_at"
    " updated_at",
    "assets.finish_extract": "status error_code error_message version width height duration_ms"
    " poster_ms is_degraded worker_heartbeat_at lease_expires_at updated_at",
    "assets.release": "status worker_id worker_heartbeat_at lease_expires_at updated_at",
    "scan_sessions.report": "root_device root_inode walked_at seen_files seen_bytes new_files"
    " changed_files missing_files errored_files",
    "library_files.record_hash": "needs_hash hash_algorithm content_hash prefix_hash error_code"
    " error_message updated_at",
    "library_files.record_verdict": "error_code error_message updated_at",
    "duplicate_groups.summarise": "file_count size_bytes total_size_bytes reclaimable_bytes"
    " updated_at",
    "worker_status.register": "state stats last_seen_at",
}

INSERTS = {
    "io_rate_limits.bootstrap": "bucket_key next_available_at_ms updated_at",
    "events.append": "job_id type payload created_at",
    "scan_sessions.open": "library_id job_id lease_epoch started_at",
    "scan_entries.stage": "session_id change rel_path media_type size_bytes mtime_ns device inode",
    "scan_batches.stage": "session_id files",
    "scan_errors.report": "session_id rel_path error_code error_message",
    "duplicate_groups.summarise": "hash_algorithm content_hash tenant_id file_count size_bytes"
    " total_size_bytes reclaimable_bytes updated_at",
    "worker_status.register": "worker_id state stats last_seen_at started_at",
    "video_frames.record": "asset_id timestamp_ms is_keyframe",
}

DELETES = {"duplicate_groups.summarise", "thumbnails.cleanup", "video_frames.record"}

# Decisions of the control plane: no path of the data plane writes them, ever.
POLICY = {
    "jobs": "id tenant_id kind library_id payload priority request_id retry_of trace_parent"
    " total_items total_bytes attempts max_attempts retry_after cancel_requested_at skip_reason"
    " created_at",
    "job_items": "id job_id item_key payload total_items total_bytes created_at",
    "scan_sessions": "id status error_code error_message finished_at",
    "library_files": "id library_id rel_path media_type size_bytes mtime_ns device inode"
    " is_missing created_at",
    "thumbnails": "id file_id file_version group_key media_type format size_px created_at",
    "thumbnail_cleanup_jobs": "id tenant_id group_key execute_after created_at",
    "wal_maintenance_jobs": "id requested_mode execute_after request_id created_at",
    "assets": "id library_id rel_path type mtime size tags_model_id created_at",
    "worker_status": "command commanded_at",
    "video_frames": "id search_vector tags_model_id",
}
POLICY_TABLES = {"libraries", "ai_models"}

BY_NAME = {str(path): path for path in WRITE_PATHS}


def columns(words: str) -> frozenset[str]:
    return frozenset(words.split())


@pytest.mark.parametrize("name", UPDATES)
def test_a_path_updates_exactly_its_columns(name: str) -> None:
    epoch = {"lease_epoch"} if name in EPOCH else set()
    assert BY_NAME[name].updates == columns(UPDATES[name]) | epoch


@pytest.mark.parametrize("name", FURTHER_UPDATES)
def test_a_further_path_updates_exactly_its_columns(name: str) -> None:
    assert BY_NAME[name].updates == columns(FURTHER_UPDATES[name])


def test_no_other_path_updates_anything() -> None:
    updating = {name for name, path in BY_NAME.items() if path.updates}
    assert updating == UPDATES.keys() | FURTHER_UPDATES.keys()


def test_rows_are_inserted_by_these_paths_with_these_columns_only() -> None:
    inserting = {name: path.inserts for name, path in BY_NAME.items() if path.inserts}
    assert inserting == {name: columns(words) for name, words in INSERTS.items()}


def test_rows_are_deleted_by_these_paths_only() -> None:
    assert {name for name, path in BY_NAME.items() if path.deletes} == DELETES


def test_every_path_has_a_name_of_its_own_and_writes_something() -> None:
    assert len(BY_NAME) == len(WRITE_PATHS)
    assert [path for path in WRITE_PATHS if path == WritePath(path.table, path.name)] == []


def test_every_path_names_columns_that_exist() -> None:
    for path in WRITE_PATHS:
        assert path.updates | path.inserts <= set(metadata.tables[path.table].columns.keys())


def test_every_step_of_the_data_plane_uses_a_declared_path() -> None:
    steps = [(machine, step) for machine in MACHINES for step in machine.steps]
    undeclared = [
        f"{machine.name}.{step.name}"
        for machine, step in steps
        if step.plane is Plane.DATA
        and (step.path not in WRITE_PATHS or step.path.table != machine.name)
    ]
    assert undeclared == []


def test_only_claims_write_the_epoch() -> None:
    claims = {
        str(step.path) for machine in MACHINES for step in machine.steps if step.lease is Lease.TAKE
    }
    assert {name for name, path in BY_NAME.items() if "lease_epoch" in path.updates} == claims


@pytest.mark.parametrize("table", sorted(metadata.tables))
def test_no_path_writes_what_the_control_plane_decides(table: str) -> None:
    paths = [path for path in WRITE_PATHS if path.table == table]
    written = frozenset[str]().union(*(path.updates | path.inserts for path in paths))
    existing = frozenset(metadata.tables[table].columns.keys())
    decided = existing if table in POLICY_TABLES else columns(POLICY.get(table, ""))
    assert decided <= existing
    assert written & decided == frozenset()
    if table in POLICY:
        # Each column belongs to one plane or is shared through a path: none was forgotten.
        assert written | decided == existing


def test_only_the_hash_that_answers_it_clears_the_mark_that_a_file_needs_one() -> None:
    paths = {name for name, path in BY_NAME.items() if "needs_hash" in path.updates | path.inserts}
    assert paths == {"library_files.record_hash"}


def test_no_row_of_a_machine_is_inserted_by_the_data_plane() -> None:
    machines = {machine.name for machine in MACHINES}
    assert {path.table for path in WRITE_PATHS if path.inserts} & machines == set()
