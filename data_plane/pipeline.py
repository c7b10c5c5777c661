"""Claims media work, has it decoded, and ends each piece by exactly one step.

Pictures and videos have slots of their own, so that a few long videos never hold up the pictures.
What somebody waits for comes first: thumbnails, then clean-ups, then the assets of libraries.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from data_plane import media
from data_plane.executor import (
    Cancelled,
    Context,
    Control,
    Executor,
    Fail,
    Interrupted,
    LeaseLost,
    Retry,
)
from data_plane.executors.cleanup import clean_up
from data_plane.executors.extract import Original, discard, extract, open_mounted
from data_plane.executors.thumbnail import make_thumbnail
from data_plane.file_states import explain
from data_plane.leases import HeldMedia, Leases
from data_plane.output import RUNS, kind_of
from data_plane.roots import Root, Roots
from data_plane.settings import DataSettings
from mediaplane.protocol import gate, wal
from mediaplane.protocol.bell import Bell, Ear
from mediaplane.protocol.clock import NOW_SQL, database_time
from mediaplane.protocol.database import Database, Topic, lock
from mediaplane.protocol.database import explain as describe
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES
from mediaplane.protocol.lifecycle import Machine
from mediaplane.protocol.machines import (
    ASSETS,
    MAX_ASSET_CLAIMS,
    THUMBNAIL_CLEANUP_JOBS,
    THUMBNAILS,
)
from mediaplane.protocol.values import MediaType
from mediaplane.protocol.write_paths import RECORD_FRAMES, RECORD_HASH, SUMMARISE, paths_of

log = logging.getLogger(__name__)

# How long a root that is away is not asked for again.
_ABSENT_SECONDS = 30.0
# How long a slot rests when the fault is not that of the file: a full disk, say.
_REST_SECONDS = 5.0
_RECOVERY_SECONDS = 1.0

# A thumbnail that failed may be asked for again after this long, twice as long each time.
_RETRY_SECONDS = 60
_MAX_RETRY_SECONDS = 24 * 3600
# What no second try changes.
_FOR_GOOD = frozenset({"unsupported", "broken", "too_large", "no_video"})


@dataclass(frozen=True)
class Line:
    """A queue of media work: how its rows are claimed, done and ended."""

    machine: Machine
    executor: Executor
    columns: Callable[[Any], dict[str, Any]]
    claim: str = "claim"
    complete: str = "complete"
    release: str = "release"
    recover: str = "recover"


THUMBNAIL_LINE = Line(
    THUMBNAILS,
    Executor(media.thumbnail_task, make_thumbnail, media.record_thumbnail),
    media.thumbnail_columns,
)
CLEANUP_LINE = Line(
    THUMBNAIL_CLEANUP_JOBS, Executor(media.cleanup_task, clean_up, lambda *_: None), lambda _: {}
)
ASSET_LINE = Line(
    ASSETS,
    Executor(
        media.extract_task,
        extract,
        media.record_extraction,
        (RECORD_FRAMES, RECORD_HASH, SUMMARISE),
    ),
    media.extraction_columns,
    "claim_extract",
    "complete_extract",
    "release_extract",
    "recover_extract",
)
LINES = (THUMBNAIL_LINE, CLEANUP_LINE, ASSET_LINE)


@dataclass(eq=False)
class Lane:
    """Slots for one type of media; only one of the idle ones looks for work."""

    media_type: MediaType
    ear: Ear
    turn: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Ending:
    """The step that ends a piece of work, and what there is to write with it."""

    step: str
    values: dict[str, Any] = field(default_factory=dict)
    task: Any = None
    result: Any = None
    # Whether the slot rests afterwards, because others would meet the same.
    is_resting: bool = False


class Pipeline:
    """The slots of a worker for media."""

    def __init__(
        self,
        database: Database,
        leases: Leases,
        settings: DataSettings,
        roots: Roots,
        context: Callable[[Control], Context],
        bell: Bell,
    ) -> None:
        self._database = database
        self._leases = leases
        self._settings = settings
        self._roots = roots
        self._context = context
        self._recovered_at = float("-inf")
        self._absent: dict[bytes, float] = {}  # root → when to look for it again
        self._counting = threading.Lock()
        self.ended: dict[str, int] = {}  # machine and step → how many pieces of work it ended
        slots = {MediaType.IMAGE: settings.image_slots, MediaType.VIDEO: settings.video_slots}
        self._threads = [
            threading.Thread(target=self._slot, args=(lane,), name=f"{name}-{number}", daemon=True)
            for name, count in slots.items()
            for lane in [Lane(name, bell.listen(Topic.WORK))]
            for number in range(count)
        ]

    def start(self) -> None:
        """Begin to claim."""
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the slots to end once `leases.stopping` is set; False if one did not."""
        ends_at = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, ends_at - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _slot(self, lane: Lane) -> None:
        stopping = self._leases.stopping
        while not stopping.is_set():
            try:
                with lane.turn:
                    line, rows = self._await_work(lane)
                for row in rows:
                    self._work(line, row)
            except Exception:
                # Leases lapse and the work is done again.
                log.exception("A slot for media met an error and goes on")
                stopping.wait(1.0)

    def _await_work(self, lane: Lane) -> tuple[Line, list[Row]]:
        while not self._leases.stopping.is_set():
            if not self._leases.paused.is_set():
                self._recover()
                line, rows = self._claim_best(lane.media_type)
                if rows:
                    return line, rows
            lane.ear.wait(self._settings.poll_seconds)
        return ASSET_LINE, []

    def _claim_best(self, media_type: MediaType) -> tuple[Line, list[Row]]:
        of_type = {"type": media_type}
        if media.thumbnail_waits(self._database, media_type):
            rows = self._claim(THUMBNAIL_LINE, media.CLAIMABLE_THUMBNAIL, of_type)
            if rows:
                return THUMBNAIL_LINE, rows
        if media.cleanup_waits(self._database):
            rows = self._claim(CLEANUP_LINE, "true", {})
            if rows:
                return CLEANUP_LINE, rows
        if wal.is_congested(self._database):
            return ASSET_LINE, []  # nobody waits for them
        for slug, root in media.roots_with_assets(self._database, media_type):
            # Claimed without its root, an asset would count a try that it never had.
            if self._is_there(root):
                where = "type = :type AND library_id = :library"
                rows = self._claim(ASSET_LINE, where, of_type | {"library": slug})
                if rows:
                    return ASSET_LINE, rows
        return ASSET_LINE, []

    def _claim(self, line: Line, where: str, bound: dict[str, Any]) -> list[Row]:
        with self._database.write(*paths_of(line.machine, line.claim)) as conn:
            return gate.claim(
                conn,
                line.machine,
                line.claim,
                self._leases.worker_id,
                self._settings.lease_seconds,
                1,
                where,
                bound,
            )

    def _is_there(self, root: Root) -> bool:
        if self._absent.get(root.path, 0) > time.monotonic():
            return False
        try:
            open_mounted(root, self._roots.open_jail).close()
        except Retry as error:
            log.warning("Assets wait for their library: %s", error)
            self._absent[root.path] = time.monotonic() + _ABSENT_SECONDS
            return False
        return True

    def _work(self, line: Line, row: Row) -> None:
        with self._leases.hold_media(line.machine, row) as held:
            ctx = self._context(held.control)
            began_at = time.monotonic()
            ending = self._run(line, held, ctx)
            kind = kind_of(line.machine, row)
            RUNS.observe(line.machine.name, kind, seconds=time.monotonic() - began_at)
            if ending is None:
                return
            held.is_ended = True
            try:
                step = self._write(line, held, ending)
            except (OperationalError, InterfaceError):
                raise  # nothing can be written now; the lease lapses and the work is put back
            except DBAPIError as error:
                log.exception("What came of %s cannot be written", held)
                step = self._write(line, held, Ending("fail", _reason("internal", describe(error))))
        self._count(f"{line.machine.name}.{step}")
        if line is ASSET_LINE and ending.result:
            outdated = _outdated(row["version"], ending.result.task.original.version, step)
            if outdated:
                discard(row["id"], outdated, ctx)
        if ending.is_resting:
            self._leases.stopping.wait(_REST_SECONDS)

    def _count(self, name: str) -> None:
        with self._counting:
            self.ended[name] = self.ended.get(name, 0) + 1

    def _run(self, line: Line, held: HeldMedia, ctx: Context) -> Ending | None:
        """Do the work; return how it ends, or None when the lease is lost."""
        task = None
        try:
            task = line.executor.prepare(self._database, held.row)
            original: Original | None = getattr(task, "original", None)
            held.library = original.library if original else None
            result = line.executor.run(task, ctx)
            return Ending(line.complete, line.columns(result), task, result)
        except (OperationalError, InterfaceError):
            raise  # nothing can be written now; the lease lapses and the work is put back
        except LeaseLost:
            log.warning("Lost the lease on %s", held)
            return None
        except Exception as error:  # noqa: BLE001 - each kind has its own step, the unknown too
            return self._early_end(line, held, task, error)

    def _early_end(self, line: Line, held: HeldMedia, task: Any, error: Exception) -> Ending:
        match error:
            case Interrupted() | Cancelled():
                return Ending(line.release)
            case Retry():
                return self._put_back(line, held, error.code, str(error))
            case Fail():
                return Ending("fail", _reason(error.code, str(error)), task)
            case OSError():
                log.warning("%s met an error of the file system", held, exc_info=error)
                return self._put_back(line, held, *explain(error))
            case _:
                log.error("%s failed", held, exc_info=error)
                message = "The worker met an unexpected error; see its log."
                return Ending("fail", _reason("internal", message), task)

    def _put_back(self, line: Line, held: HeldMedia, code: str, message: str) -> Ending:
        """End work for which its file is not to blame: assets wait, others may ask again."""
        if line is not ASSET_LINE:
            return Ending("fail", _reason(code, message))
        log.warning("%s is put back: %s", held, message)
        if held.row["retry_count"] > MAX_ASSET_CLAIMS:
            return Ending("give_up_extract", _reason(code, message), is_resting=True)
        return Ending(line.release, is_resting=True)

    def _write(self, line: Line, held: HeldMedia, ending: Ending) -> str:
        """Write how a piece of work ended, with all that came of it; return the step taken."""
        step, values = ending.step, ending.values
        paths = {*paths_of(line.machine, step), *paths_of(line.machine, line.release)}
        with self._database.write(*paths, *line.executor.paths) as conn:
            original = getattr(ending.task, "original", None)
            if line is ASSET_LINE and original:
                # As whoever takes over a scan: before that has ended, nobody knows the new state.
                lock(conn, DUPLICATES)
                if media.is_outdated(conn, original, is_made=step == line.complete):
                    step, values = line.release, {}  # it is of what is not there any more
            if line is THUMBNAIL_LINE and step == "fail":
                values = values | {"retry_after": _retry_after(conn, held.row, values)}
            taken = gate.finish(conn, line.machine, step, [(held.lessee, values)])
            if not taken:
                log.warning("Lost the lease on %s before its %s", held, step)
                return "lost"
            if step == line.complete:
                line.executor.record(conn, ending.result)
        return step

    def _recover(self) -> None:
        """Put back what silent workers held, if it is time to look for that again."""
        if time.monotonic() - self._recovered_at < _RECOVERY_SECONDS:
            return
        self._recovered_at = time.monotonic()
        for line in LINES:
            if self._has_expired(line):
                with self._database.write(*paths_of(line.machine, line.recover)) as conn:
                    rows = gate.take_all(conn, line.machine, line.recover, "true")
                _tell(line, rows)

    def _has_expired(self, line: Line) -> bool:
        (status,) = line.machine.step(line.recover).sources
        now = NOW_SQL[self._database.dialect]
        expired = text(
            f"SELECT 1 FROM {line.machine.name} WHERE status = '{status}'"
            f" AND (lease_expires_at IS NULL OR lease_expires_at <= {now}) LIMIT 1"
        )
        with self._database.read() as conn:
            return conn.execute(expired).first() is not None


def _tell(line: Line, rows: Sequence[Row]) -> None:
    for row in rows:
        log.warning("Put back %s %d, whose lease has expired", line.machine.name, row["id"])


def _outdated(known: str | None, made: str, step: str) -> str | None:
    """Return the version of an asset whose files are of no more use, if there is one."""
    if known == made or step == "lost":
        return None  # whoever has the asset now may have put the same files there
    return known if step == ASSET_LINE.complete else made


def _reason(code: str, message: str) -> dict[str, Any]:
    return {"error_code": code, "error_message": message}


def _retry_after(conn: Any, row: Row, values: dict[str, Any]) -> int:
    seconds: int = min(_RETRY_SECONDS << min(row["error_count"], 11), _MAX_RETRY_SECONDS)
    if values["error_code"] in _FOR_GOOD:
        seconds = _MAX_RETRY_SECONDS
    return database_time(conn) + 1000 * seconds
