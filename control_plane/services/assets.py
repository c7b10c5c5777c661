"""AssetService: the pictures and videos of the libraries, and how far they are processed."""

import grpc

from control_plane.policy import assets as rules
from control_plane.policy import libraries
from control_plane.services import media_wire, names, paging, wire
from control_plane.store import assets
from mediaplane.errors import InvalidArgument
from mediaplane.identity import caller
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import AssetStatus
from mediaplane.v1 import asset_service_pb2 as pb
from mediaplane.v1.asset_service_pb2_grpc import AssetServiceServicer

_MAX_LIBRARIES = 500
_LISTED_STATES = (AssetStatus.FAILED, AssetStatus.POISONED)


class AssetService(AssetServiceServicer):
    """The pictures and videos of this installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ListAssets(
        self, request: pb.ListAssetsRequest, context: grpc.ServicerContext
    ) -> pb.ListAssetsResponse:
        slug = names.library_slug(request.parent)
        status = wire.from_enum(pb.Asset.State, request.state)
        if status:
            return self._list_in_state(request, slug, AssetStatus(status))
        limit, query = paging.size(request.page_size), paging.fingerprint("assets", slug)
        after = paging.decode_path(request.page_token, query)
        with self._database.read() as conn:
            library = libraries.get(conn, caller().tenant_id, slug)
            rows = assets.page(conn, library["slug"], limit=limit + 1, after_path=after)
        page, tail = paging.split_paths(rows, limit)
        return pb.ListAssetsResponse(
            assets=[media_wire.asset(row) for row in page],
            next_page_token=paging.encode_path(tail["rel_path"], query) if tail else "",
        )

    def _list_in_state(
        self, request: pb.ListAssetsRequest, slug: str, status: AssetStatus
    ) -> pb.ListAssetsResponse:
        if status not in _LISTED_STATES:
            raise InvalidArgument(
                f"state is {status}; assets can be listed by {' or '.join(_LISTED_STATES)} alone."
            )
        limit, query = paging.size(request.page_size), paging.fingerprint("assets", slug, status)
        after = paging.decode_row(request.page_token, query)
        with self._database.read() as conn:
            library = libraries.get(conn, caller().tenant_id, slug)["slug"]
            rows = assets.state_page(conn, library, status, limit=limit + 1, after_id=after)
        page, tail = paging.split_paths(rows, limit)
        return pb.ListAssetsResponse(
            assets=[media_wire.asset(row) for row in page],
            next_page_token=paging.encode_row(tail["id"], query) if tail else "",
        )

    def GetAsset(self, request: pb.GetAssetRequest, context: grpc.ServicerContext) -> pb.Asset:
        library, asset_id = names.asset(request.name)
        with self._database.read() as conn:
            return media_wire.asset(rules.get(conn, caller().tenant_id, library, asset_id))

    def ListFrames(
        self, request: pb.ListFramesRequest, context: grpc.ServicerContext
    ) -> pb.ListFramesResponse:
        library, asset_id = names.asset(request.parent)
        limit, query = paging.size(request.page_size), paging.fingerprint("frames", request.parent)
        from_ms = paging.decode_row(request.page_token, query)
        with self._database.read() as conn:
            asset = rules.get(conn, caller().tenant_id, library, asset_id)
            rows = rules.frames(conn, asset, limit=limit + 1, from_ms=from_ms)
        page, tail = paging.split(rows, limit)
        return pb.ListFramesResponse(
            frames=[media_wire.frame(row, request.parent) for row in page],
            next_page_token=paging.encode_row(tail["timestamp_ms"] + 1, query) if tail else "",
        )

    def RetryAsset(self, request: pb.RetryAssetRequest, context: grpc.ServicerContext) -> pb.Asset:
        library, asset_id = names.asset(request.name)
        with self._database.write() as conn:
            return media_wire.asset(rules.retry(conn, caller().tenant_id, library, asset_id))

    def RetryAssets(
        self, request: pb.RetryAssetsRequest, context: grpc.ServicerContext
    ) -> pb.RetryAssetsResponse:
        slug = names.library_slug(request.parent)
        with self._database.read() as conn:
            libraries.get(conn, caller().tenant_id, slug)
        return pb.RetryAssetsResponse(retried_assets=rules.retry_all(self._database, slug))

    def GetPipelineStatus(
        self, request: pb.GetPipelineStatusRequest, context: grpc.ServicerContext
    ) -> pb.PipelineStatus:
        slugs = _chosen_slugs(request)
        tenant_id = caller().tenant_id
        with self._database.read() as conn:
            for slug in slugs or ():
                libraries.get(conn, tenant_id, slug)
            resting = assets.resting(conn, tenant_id, slugs, with_failed=not request.omit_failed)
            running = assets.running(conn, tenant_id, slugs)
        return pb.PipelineStatus(running_assets=running, **resting)


def _chosen_slugs(request: pb.GetPipelineStatusRequest) -> list[str] | None:
    """Return the libraries that are asked about; None means all."""
    is_of_many = request.parent in ("", names.ALL_LIBRARIES)
    if not is_of_many and request.libraries:
        raise InvalidArgument("Name one library as the parent or several as libraries, not both.")
    if len(request.libraries) > _MAX_LIBRARIES:
        raise InvalidArgument(
            f"At most {_MAX_LIBRARIES} libraries can be named, not {len(request.libraries)}."
        )
    named = list(request.libraries) if is_of_many else [request.parent]
    return [names.library_slug(name) for name in named] or None
