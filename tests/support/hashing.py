"""Hash jobs as the control plane admits and plans them."""

from control_plane.policy import admission, planning
from control_plane.policy.admission import Wanted
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import JobKind


def plan_hash(database: Database, library: str | None = None, tenant_id: str | None = None) -> Row:
    """Admit a hash job and plan it."""
    with database.write() as conn:
        job = admission.create(conn, Wanted(JobKind.HASH, library, tenant_id))
    return planning.plan(database, job)
