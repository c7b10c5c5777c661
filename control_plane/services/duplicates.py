"""DuplicateService: groups of files with the same content."""

from functools import lru_cache

import grpc

from control_plane.policy import duplicates, libraries
from control_plane.services import names, paging, tenants, wire
from control_plane.store import files, groups
from mediaplane.errors import InvalidArgument
from mediaplane.identity import caller
from mediaplane.paths import PathRefused, check_rel_path
from mediaplane.protocol import audit
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Values
from mediaplane.protocol.values import DEFAULT_TENANT
from mediaplane.v1 import duplicate_service_pb2 as pb
from mediaplane.v1.asset_service_pb2 import Asset
from mediaplane.v1.duplicate_service_pb2_grpc import DuplicateServiceServicer

_page = paging.writer(pb.ListDuplicateGroupsResponse, "groups", wire.fill_group)
_ORDERS = {None: groups.COPIES, "copies": groups.COPIES, "reclaimable": groups.RECLAIMABLE}
# The figures that a token has in front of the hash.
_FIGURES = {
    groups.COPIES: ("file_count", "total_size_bytes"),
    groups.RECLAIMABLE: ("reclaimable_bytes",),
}


class DuplicateService(DuplicateServiceServicer):
    """The duplicates of this installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ListDuplicateGroups(
        self, request: pb.ListDuplicateGroupsRequest, context: grpc.ServicerContext
    ) -> pb.ListDuplicateGroupsResponse:
        limit = paging.size(request.page_size)
        order = _ORDERS[wire.from_enum(pb.ListDuplicateGroupsRequest.Order, request.order)]
        wanted = _filter(request)
        token, tenant_id = request.page_token, caller().tenant_id
        after = _position(token, order, wanted, tenant_id or DEFAULT_TENANT) if token else None
        is_of_all = tenant_id is None
        with self._database.read() as conn:
            if wanted.library_id:
                tenant_id = libraries.get(conn, tenant_id, wanted.library_id)["tenant_id"]
            page, tail = groups.page(conn, tenant_id, order, wanted, limit=limit, after=after)
        return _page(page, _token(tail, order, wanted, is_of_all) if tail else "")

    def ListDuplicateFiles(
        self, request: pb.ListDuplicateFilesRequest, context: grpc.ServicerContext
    ) -> pb.ListDuplicateFilesResponse:
        limit = paging.size(request.page_size)
        algorithm, content_hash = names.group(request.parent)
        tenant_id = tenants.chosen(request.tenant)
        after = paging.decode_id(request.page_token)
        with self._database.read() as conn:
            rows = files.group_files_page(
                conn, tenant_id, algorithm, content_hash, limit=limit + 1, after_id=after
            )
        page, tail = paging.split_paths(rows, limit)
        return pb.ListDuplicateFilesResponse(
            files=[wire.file(row) for row in page],
            next_page_token=str(tail["id"]) if tail else "",
        )

    def VerifyDuplicateGroups(
        self, request: pb.VerifyDuplicateGroupsRequest, context: grpc.ServicerContext
    ) -> pb.VerifyDuplicateGroupsResponse:
        audit.concerns("duplicateGroups/-")
        found = duplicates.verify(self._database, caller().tenant_id, repair=request.repair)
        return pb.VerifyDuplicateGroupsResponse(
            groups=found.groups,
            wrong_groups=found.wrong_groups,
            is_repaired=request.repair and found.wrong_groups > 0,
        )


def _filter(request: pb.ListDuplicateGroupsRequest) -> groups.Filter:
    if request.min_size_bytes < 0:
        raise InvalidArgument(
            f"min_size_bytes is {request.min_size_bytes}; it must not be negative."
        )
    if request.path_prefix and not request.library:
        raise InvalidArgument("path_prefix is a folder of a library; name the library as well.")
    return groups.Filter(
        names.library_slug(request.library) if request.library else "",
        _folder(request.path_prefix) if request.path_prefix else b"",
        wire.from_enum(Asset.Type, request.media_type) or "",
        request.min_size_bytes,
    )


def _folder(prefix: bytes) -> bytes:
    try:
        return check_rel_path(prefix.removesuffix(b"/")) + b"/"
    except PathRefused as error:
        raise InvalidArgument(f"path_prefix names no folder: {error}.") from None


@lru_cache(maxsize=paging.REMEMBERED_TOKENS)
def _token(tail: Values, order: groups.Order, wanted: groups.Filter, is_of_all: bool) -> str:
    row = dict(zip(groups.SHOWN, tail, strict=False))
    fields = {name: row[name] for name in (*_FIGURES[order], "hash_algorithm")}
    fields["content_hash_hex"] = row["content_hash"].hex()
    if is_of_all and row["tenant_id"] != DEFAULT_TENANT:
        fields["tenant_id"] = row["tenant_id"]
    return paging.encode(fields | _binding(order, wanted))


@lru_cache(maxsize=paging.REMEMBERED_TOKENS)
def _position(
    token: str, order: groups.Order, wanted: groups.Filter, tenant_id: str
) -> groups.Position:
    """Return the place in the order's index that a token names, if need be this tenant's."""
    binding = _binding(order, wanted)
    texts = ("hash_algorithm", "content_hash_hex", *binding)
    shape = dict.fromkeys(_FIGURES[order], int) | dict.fromkeys(texts, str)
    # The protocol's cursor has no tenant: it is the default one's, or the caller's.
    cursor = paging.decode(token, shape, usual={"tenant_id": tenant_id})
    if binding.items() - cursor.items():
        raise paging.refused()
    try:
        key = names.group_parts(f"{cursor['hash_algorithm']}:{cursor['content_hash_hex']}")
    except InvalidArgument:
        raise paging.refused() from None
    # The index of copies holds its figures negated.
    sign = 1 if order.is_descending else -1
    return groups.Position(
        (*(sign * cursor[name] for name in _FIGURES[order]), *key), cursor["tenant_id"]
    )


def _binding(order: groups.Order, wanted: groups.Filter) -> dict[str, str]:
    """Return what binds a token to its query; the protocol's own listing has a cursor alone."""
    if order is groups.COPIES and not any(wanted):
        return {}
    return {"query": paging.fingerprint("groups", order, wanted)}
