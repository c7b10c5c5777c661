"""The work behind `mediaplane up`: find or add the libraries, scan each, hash them all."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from grpc import RpcError, StatusCode

from mediaplane.cli import output
from mediaplane.cli.documents import enum_name, last_part
from mediaplane.cli.progress import follow, outcome, succeeded
from mediaplane.client import Client, CommandFailed, error_info, failure
from mediaplane.paths import MAX_SLUG_CHARS, display, slugify

_MAX_NAME_CHARS = 200


def find_libraries(client: Client, roots: list[bytes]) -> list[Any]:
    """The libraries with these roots, added where there is none; without roots, all active ones."""
    if not roots:
        libraries = [library for library in client.libraries() if library.is_active]
        if not libraries:
            raise CommandFailed("There is no library yet. Name a directory: mediaplane up PATH")
        return libraries
    roots = list(dict.fromkeys(roots))
    # All are looked at before anything is done, so that a typing error leaves no trace.
    problems = [problem for root in roots if (problem := _problem(client, root))]
    if problems:
        raise CommandFailed("\n".join(problems))
    return [_library(client, root) for root in roots]


def _problem(client: Client, root: bytes) -> str:
    if not client.data_address:
        return ""  # a server elsewhere: its scan will tell
    probe = client.probe_root(root)
    state = enum_name(probe, "state")
    if state in ("ok", "empty"):
        return ""  # whether an empty one is a lost disk, the scan will tell
    what = probe.message or state.replace("_", " ")
    shown = display(root)
    return what if shown in what else f"{shown}: {what}"


def _library(client: Client, root: bytes) -> Any:
    """The library with this root, added when there is none."""
    name = _display_name(root)
    number = 1
    while True:
        for library in client.libraries():
            if library.root_path == root:
                return library
        suffix = f"-{number}" if number > 1 else ""
        slug = slugify(name)[: MAX_SLUG_CHARS - len(suffix)].rstrip("-") + suffix
        try:
            return client.add_library(name, root, slug if suffix else "")
        except RpcError as error:
            if error.code() is not StatusCode.ALREADY_EXISTS:
                raise
            number += 1  # the name is taken by another root


def _display_name(root: bytes) -> str:
    return display(root.rpartition(b"/")[2])[:_MAX_NAME_CHARS] or "root"


def work(
    client: Client,
    libraries: list[Any],
    *,
    accept_new_root: bool,
    is_shown: bool,
    known: Collection[str] = (),
) -> list[str]:
    """Scan each library, then hash those of each tenant; returns what went wrong.

    That is told as well, but for what the caller knows already.
    """
    slugs = [last_part(library.name) for library in libraries]
    steps: list[tuple[str, Callable[[], Any]]] = [
        (slug, partial(client.scan, slug, accept_new_root=accept_new_root)) for slug in slugs
    ]
    steps += [
        ("hashing", partial(client.hash, tenant=tenant))
        for tenant in sorted({library.tenant for library in libraries})
    ]
    failures: list[str] = []
    for what, admit in steps:
        problem = _attempt(client, admit, is_shown=is_shown)
        if problem:
            failures.append(f"{what}: {problem}")
            if failures[-1] not in known:
                output.tell(f"Error: {failures[-1]}")
    return failures


def _attempt(client: Client, admit: Callable[[], Any], *, is_shown: bool) -> str:
    """Have a job done; returns what went wrong, '' when nothing did."""
    try:
        job = _admitted(client, admit, is_shown=is_shown)
        job = follow(client, job.name, is_shown=is_shown)
    except RpcError as error:
        found = failure(error, client.control_address)
        if found.reason == "UNAVAILABLE":
            raise  # nothing else will work either
        return str(found)
    return "" if succeeded(job) else outcome(job)


def _admitted(client: Client, admit: Callable[[], Any], *, is_shown: bool) -> Any:
    """Admit a job, after the scan or hash that is under way has ended: there is only one."""
    while True:
        try:
            return admit()
        except RpcError as error:
            reason, details = error_info(error)
            if reason != "ACTIVE_JOB_EXISTS" or "job" not in details:
                raise
            follow(client, details["job"], is_shown=is_shown)
