"""Rescans libraries soon after something in them has changed."""

import errno
import os
import sys
import time
from pathlib import Path
from typing import Any

from mediaplane.cli import campaign, output
from mediaplane.cli.documents import last_part
from mediaplane.cli.inotify import FolderWatch, Identity
from mediaplane.client import Client
from mediaplane.filesystems import network_filesystem

# One change seldom comes alone: a folder that is copied is scanned once, when it is whole.
_QUIET_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 30.0
_POLL_SECONDS = 60.0

_ADVICE = {
    errno.ENOSPC: "fs.inotify.max_user_watches is used up; raise it to be told of changes at once:"
    " sudo sysctl fs.inotify.max_user_watches=1048576",
    errno.EMFILE: "fs.inotify.max_user_instances is used up; raise it to be told of changes at"
    " once: sudo sysctl fs.inotify.max_user_instances=1024",
}


class Watcher:
    """The libraries under watch, each with the changes that no scan has seen yet."""

    def __init__(
        self,
        client: Client,
        libraries: list[Any],
        *,
        state: Path,
        interval_seconds: float | None,
        as_json: bool,
    ) -> None:
        """Begin to watch; with an interval, by a scan each time it has passed."""
        own = _identity(os.fsencode(state))
        ignored = frozenset({own} if own else ())
        self._client = client
        self._as_json = as_json
        self._watched = [Watched(library, ignored, interval_seconds) for library in libraries]

    def rescan_changed(self) -> None:
        """Rescan, one after the other, the libraries that have changed and are quiet again."""
        for watched in self._watched:
            watched.look()
            if watched.is_due():
                self._rescan(watched)

    def _rescan(self, watched: "Watched") -> None:
        watched.forget_changes()
        before = watched.failures
        watched.failures = campaign.work(
            self._client,
            [watched.library],
            accept_new_root=False,
            is_shown=not self._as_json,
            known=before,
        )
        watched.rescanned_at = time.monotonic()
        if watched.failures:
            if self._as_json and watched.failures != before:
                output.json_line({"library": watched.slug, "failures": watched.failures})
        else:
            found = _findings(self._client, watched.slug)
            is_news = any(found[key] for key in ("new_files", "changed_files", "missing_files"))
            # Most scans of a clock find nothing, which nobody wants to read every minute.
            if is_news or before or not watched.is_polled:
                _report(found, as_json=self._as_json)
        sys.stdout.flush()


class Watched:
    """One library, and how its changes are learned of."""

    def __init__(
        self, library: Any, ignored: frozenset[Identity], interval_seconds: float | None
    ) -> None:
        self.library = library
        self.slug = last_part(library.name)
        self.failures: list[str] = []
        self.rescanned_at = time.monotonic()
        self.is_polled = False
        self._ignored = ignored
        self._interval_seconds = interval_seconds or _POLL_SECONDS
        self._folders: FolderWatch | None = None
        self._identity: Identity | None = None
        self._first_change_at: float | None = None
        self._last_change_at = 0.0
        network = network_filesystem(Path(os.fsdecode(library.root_path)))
        if interval_seconds:
            self.is_polled = True
        elif network:
            self._poll(f"{network} does not tell of the changes that other machines make")
        else:
            self._follow_root()

    def look(self) -> None:
        """Take note of what changed since the last look."""
        if self._follow_root() or self._has_changed():
            self._last_change_at = time.monotonic()
            self._first_change_at = self._first_change_at or self._last_change_at

    def is_due(self) -> bool:
        """Tell whether it is time for a scan."""
        now = time.monotonic()
        # What a scan that failed was to find is still to be found, although nothing changes again.
        is_repeated = self.is_polled or bool(self.failures)
        wait_seconds = self._interval_seconds if self.is_polled else _LONGEST_WAIT_SECONDS
        if is_repeated and now - self.rescanned_at >= wait_seconds:
            # A scan of a lost disk fails; one such job is enough.
            return not self.failures or _identity(self.library.root_path) is not None
        if self._first_change_at is None:
            return False
        return (
            now - self._last_change_at >= _QUIET_SECONDS
            or now - self._first_change_at >= _LONGEST_WAIT_SECONDS
        )

    def forget_changes(self) -> None:
        """Begin anew, before a scan: what changes while it runs is for the next one."""
        self._first_change_at = None

    def _has_changed(self) -> bool:
        try:
            return self._folders is not None and self._folders.has_changed()
        except OSError as error:
            self._poll(_explain(error))
            return True

    def _follow_root(self) -> bool:
        """Watch what is at the root by now; returns whether that is another folder, or none."""
        identity = None if self.is_polled else _identity(self.library.root_path)
        # A folder that is made anew may get the very identity of the one before.
        is_dead = self._folders is not None and not self._folders.is_alive
        if identity == self._identity and not is_dead:
            return False
        self._identity = identity
        self._stop()
        try:
            if identity:
                self._folders = FolderWatch(
                    self.library.root_path,
                    ignored=self._ignored,
                    crosses_filesystems=self.library.crosses_filesystems,
                )
        except FileNotFoundError:
            self._identity = None  # gone again
        except OSError as error:
            self._poll(_explain(error))
        return True

    def _poll(self, why: str) -> None:
        self._stop()
        self._identity = None
        self.is_polled = True
        output.tell(f"{self.slug} is scanned every {self._interval_seconds:.0f} s: {why}")

    def _stop(self) -> None:
        if self._folders:
            self._folders.close()
            self._folders = None


def _identity(folder: bytes) -> Identity | None:
    """Tell folders at one path apart; None where there is none."""
    try:
        info = os.stat(folder)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _explain(error: OSError) -> str:
    return _ADVICE.get(error.errno or 0, f"the system cannot tell of changes ({error.strerror})")


def _findings(client: Client, slug: str) -> dict[str, Any]:
    scan = client.library(slug).last_scan
    statistics = client.statistics()
    return {
        "library": slug,
        "files": scan.seen_files,
        "new_files": scan.new_files,
        "changed_files": scan.changed_files,
        "missing_files": scan.missing_files,
        "errored_files": scan.errored_files,
        "groups": statistics.groups,
        "duplicate_files": statistics.duplicate_files,
        "reclaimable_bytes": statistics.reclaimable_bytes,
        "failures": [],
    }


def _report(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.json_line(found)
        return
    copies = output.plural(found["duplicate_files"], "extra copy", "extra copies")
    output.say(
        f"{found['library']}: {output.human_count(found['new_files'])} new,"
        f" {output.human_count(found['changed_files'])} changed,"
        f" {output.human_count(found['missing_files'])} missing;"
        f" now {copies} in {output.plural(found['groups'], 'group')},"
        f" {output.human_bytes(found['reclaimable_bytes'])} reclaimable"
    )
