"""Which executor does which kind of work."""

from data_plane.catalogue import probe_task, scan_task
from data_plane.derivatives import sweep_task
from data_plane.executor import Executor
from data_plane.executors.hash import hash_shard
from data_plane.executors.probe import probe
from data_plane.executors.scan import scan
from data_plane.executors.sweep import sweep
from data_plane.executors.verify import verify
from data_plane.hashing import hash_task, record_hashes
from data_plane.verification import record_verdicts, verify_task
from mediaplane.protocol.kinds import KINDS
from mediaplane.protocol.values import JobKind
from mediaplane.protocol.write_paths import RECORD_HASH, RECORD_VERDICT, SUMMARISE


def _nothing(*_: object) -> None:
    """Record nothing: the work reported by itself as it went on."""


EXECUTORS: dict[JobKind, Executor] = {
    JobKind.SCAN: Executor(scan_task, scan, _nothing),
    JobKind.HASH: Executor(hash_task, hash_shard, record_hashes, (RECORD_HASH, SUMMARISE)),
    JobKind.VERIFY: Executor(verify_task, verify, record_verdicts, (RECORD_VERDICT,)),
    JobKind.PROBE: Executor(probe_task, probe, _nothing),
    JobKind.SWEEP: Executor(sweep_task, sweep, _nothing),
}


def check(executors: dict[JobKind, Executor]) -> None:
    """Refuse to start when a kind has no executor or an executor no kind."""
    if executors.keys() != KINDS.keys():
        odd = ", ".join(sorted(executors.keys() ^ KINDS.keys()))
        raise RuntimeError(f"Kinds and executors differ in: {odd}")
