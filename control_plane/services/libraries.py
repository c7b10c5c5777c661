"""LibraryService: libraries and what was found in them."""

import time
from typing import Any

import grpc
from sqlalchemy import Connection

from control_plane.policy import admission, planning, regrouping, trash
from control_plane.policy import libraries as rules
from control_plane.services import names, paging, tenants, wire
from control_plane.store import files, libraries
from mediaplane.errors import InvalidArgument
from mediaplane.identity import caller
from mediaplane.protocol import audit
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import DEFAULT_TENANT, JobKind
from mediaplane.v1 import library_service_pb2 as pb
from mediaplane.v1.job_service_pb2 import Job
from mediaplane.v1.library_service_pb2_grpc import LibraryServiceServicer


class LibraryService(LibraryServiceServicer):
    """The libraries of this installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def CreateLibrary(
        self, request: pb.CreateLibraryRequest, context: grpc.ServicerContext
    ) -> pb.Library:
        library = request.library
        settings = {c: v for c, v in _settings(library).items() if v is not None}
        settings.pop("name", None)
        with self._database.write() as conn:
            row = rules.create(
                conn,
                tenants.chosen(library.tenant) or DEFAULT_TENANT,
                slug=request.library_id,
                name=library.display_name,
                root=library.root_path,
                **settings,
            )
            audit.concerns(f"libraries/{row['slug']}")
            return wire.library(row, None)

    def GetLibrary(
        self, request: pb.GetLibraryRequest, context: grpc.ServicerContext
    ) -> pb.Library:
        with self._database.read() as conn:
            library = rules.get(conn, caller().tenant_id, names.library_slug(request.name))
            return _with_scan(conn, library)

    def ListLibraries(
        self, request: pb.ListLibrariesRequest, context: grpc.ServicerContext
    ) -> pb.ListLibrariesResponse:
        limit = paging.size(request.page_size)
        after = request.page_token
        slug = paging.decode(after, {"slug": str})["slug"] if after else ""
        with self._database.read() as conn:
            rows = libraries.page(
                conn,
                caller().tenant_id,
                limit=limit + 1,
                after_slug=slug,
                in_trash=request.in_trash,
            )
            page, tail = paging.split(rows, limit)
            scans = libraries.last_scans(conn, [row["slug"] for row in page])
        return pb.ListLibrariesResponse(
            libraries=[wire.library(row, scans.get(row["slug"])) for row in page],
            next_page_token=paging.encode({"slug": tail["slug"]}) if tail else "",
        )

    def UpdateLibrary(
        self, request: pb.UpdateLibraryRequest, context: grpc.ServicerContext
    ) -> pb.Library:
        slug = names.library_slug(request.library.name)
        columns = _masked(request)
        with self._database.write() as conn:
            return _with_scan(conn, rules.change(conn, caller().tenant_id, slug, columns))

    def DeleteLibrary(
        self, request: pb.DeleteLibraryRequest, context: grpc.ServicerContext
    ) -> pb.Library:
        slug = names.library_slug(request.name)
        with self._database.write() as conn:
            library = _with_scan(conn, trash.delete(conn, caller().tenant_id, slug))
        regrouping.settle(self._database, slug)
        return library

    def RestoreLibrary(
        self, request: pb.RestoreLibraryRequest, context: grpc.ServicerContext
    ) -> pb.Library:
        slug = names.library_slug(request.name)
        row = trash.restore(self._database, caller().tenant_id, slug)
        regrouping.settle(self._database, slug)
        with self._database.read() as conn:
            return _with_scan(conn, row)

    def PurgeLibrary(
        self, request: pb.PurgeLibraryRequest, context: grpc.ServicerContext
    ) -> pb.PurgeLibraryResponse:
        slug = names.library_slug(request.name)
        began = time.monotonic()
        with self._database.write(is_bulk=True) as conn:
            purged = trash.purge(conn, caller().tenant_id, slug)
        if not purged.is_gone:
            time.sleep(max(trash.PAUSE_SECONDS, time.monotonic() - began))
        return pb.PurgeLibraryResponse(removed_rows=purged.removed_rows, is_gone=purged.is_gone)

    def ScanLibrary(self, request: pb.ScanLibraryRequest, context: grpc.ServicerContext) -> Job:
        wanted = admission.Wanted(
            JobKind.SCAN,
            names.library_slug(request.name),
            caller().tenant_id,
            accept_new_root=request.accept_new_root,
        )
        with self._database.write() as conn:
            return wire.job(admission.create(conn, wanted))

    def HashLibrary(self, request: pb.HashLibraryRequest, context: grpc.ServicerContext) -> Job:
        every = request.name == names.ALL_LIBRARIES
        slug = None if every else names.library_slug(request.name)
        wanted = admission.Wanted(JobKind.HASH, slug, tenants.chosen(request.tenant))
        with self._database.write() as conn:
            job = admission.create(conn, wanted)
        return wire.job(planning.plan(self._database, job))

    def ListFiles(
        self, request: pb.ListFilesRequest, context: grpc.ServicerContext
    ) -> pb.ListFilesResponse:
        limit, slug = paging.size(request.page_size), names.library_slug(request.parent)
        filters = request.rel_path, request.has_error, request.include_missing
        query = paging.fingerprint("files", slug, *filters)
        after = paging.decode_path(request.page_token, query)
        with self._database.read() as conn:
            library = rules.get(conn, caller().tenant_id, slug)
            rows = files.page(
                conn,
                library["slug"],
                limit=limit + 1,
                after_path=after,
                rel_path=request.rel_path,
                only_errors=request.has_error,
                include_missing=request.include_missing,
            )
        page, tail = paging.split_paths(rows, limit)
        return pb.ListFilesResponse(
            files=[wire.file(row) for row in page],
            next_page_token=paging.encode_path(tail["rel_path"], query) if tail else "",
        )

    def ListScanErrors(
        self, request: pb.ListScanErrorsRequest, context: grpc.ServicerContext
    ) -> pb.ListScanErrorsResponse:
        limit, after = paging.size(request.page_size), paging.decode_id(request.page_token)
        with self._database.read() as conn:
            library = rules.get(conn, caller().tenant_id, names.library_slug(request.parent))
            rows = libraries.scan_errors_page(
                conn, library["slug"], limit=limit + 1, after_id=after
            )
        page, tail = paging.split_paths(rows, limit)
        return pb.ListScanErrorsResponse(
            scan_errors=[wire.scan_error(row) for row in page],
            next_page_token=str(tail["id"]) if tail else "",
        )


def _with_scan(conn: Connection, row: Row) -> pb.Library:
    return wire.library(row, libraries.last_scans(conn, [row["slug"]]).get(row["slug"]))


def _settings(library: pb.Library) -> dict[str, Any]:
    """Return what a caller may set, by column; None where the request leaves it open."""
    return {
        "name": library.display_name or None,
        "is_active": library.is_active if library.HasField("is_active") else None,
        "hash_policy": wire.from_enum(pb.Library.HashPolicy, library.hash_policy),
        "hash_algorithm": wire.from_enum(pb.HashAlgorithm, library.hash_algorithm),
        "sampling_limit": library.sampling_limit or None,
        "sampling_policy": _sampling_policy(library.sampling_policy),
        "include_globs": list(library.include_globs),
        "exclude_globs": list(library.exclude_globs),
        "skips_hidden": library.skips_hidden,
        "crosses_filesystems": library.crosses_filesystems,
        "min_size_bytes": library.min_size_bytes,
    }


def _sampling_policy(policy: pb.SamplingPolicy) -> dict[str, str] | None:
    measure = wire.from_enum(pb.SamplingPolicy.Measure, policy.measure)
    return {"measure": measure} if measure else None


def _masked(request: pb.UpdateLibraryRequest) -> dict[str, Any]:
    settings = _settings(request.library)
    settings["display_name"] = settings.pop("name")
    columns = {}
    for field in request.update_mask.paths:
        if field not in settings:
            raise InvalidArgument(
                f"{field[:100]!r} cannot be changed; the mask may name {', '.join(settings)}."
            )
        if settings[field] is None:
            raise InvalidArgument(f"The mask names {field}, but the library has no value for it.")
        columns["name" if field == "display_name" else field] = settings[field]
    if not columns:
        raise InvalidArgument(f"update_mask is empty; name one of {', '.join(settings)}.")
    return columns
