"""What a client asks about pictures, videos and thumbnails, in words that people type."""

import re
import time
from collections.abc import Iterator
from typing import Any

import grpc

from mediaplane.client import Client, CommandFailed, library_name, pages
from mediaplane.paths import display
from mediaplane.v1 import asset_service_pb2 as assets_v1
from mediaplane.v1 import content_service_pb2 as content_v1
from mediaplane.v1 import library_service_pb2 as libraries_v1
from mediaplane.v1 import thumbnail_service_pb2 as thumbnails_v1

_FILE_NAME = re.compile(r"libraries/[a-z0-9-]+/files/[0-9]+")
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5
_LIBRARIES_PER_CALL = 500


def assets(
    client: Client, slug: str, limit: int | None = None, state: str = "unspecified"
) -> Iterator[assets_v1.Asset]:
    """The assets of a library, of one state by its short lowercase name."""
    request = assets_v1.ListAssetsRequest(parent=library_name(slug), state=f"STATE_{state.upper()}")
    return pages(client.asset_service.ListAssets, request, "assets", limit)


def find_asset(client: Client, given: str) -> assets_v1.Asset:
    """The asset with a name or, in whatever library, with a number."""
    if "/" in given:
        return client.asset_service.GetAsset(assets_v1.GetAssetRequest(name=given))
    for library in client.libraries():
        request = assets_v1.GetAssetRequest(name=f"{library.name}/assets/{given}")
        try:
            return client.asset_service.GetAsset(request)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
    raise CommandFailed(
        f"There is no asset {given}; `mediaplane asset list SLUG` shows those of a library.",
        "NOT_FOUND",
    )


def frames(client: Client, asset: str, limit: int | None = None) -> Iterator[assets_v1.Frame]:
    """The frames that represent a video."""
    request = assets_v1.ListFramesRequest(parent=asset)
    return pages(client.asset_service.ListFrames, request, "frames", limit)


def retry_asset(client: Client, name: str) -> assets_v1.Asset:
    """Have a failed asset processed again."""
    return client.asset_service.RetryAsset(assets_v1.RetryAssetRequest(name=name))


def retry_assets(client: Client, slug: str) -> int:
    """Have all failed assets of a library processed again; returns how many."""
    request = assets_v1.RetryAssetsRequest(parent=library_name(slug))
    return client.asset_service.RetryAssets(request).retried_assets


def pipeline(
    client: Client, slugs: list[str] | None = None, *, omits_failed: bool = False
) -> assets_v1.PipelineStatus:
    """How much of some libraries, or of all, is still to be processed."""
    names = [library_name(slug) for slug in slugs or ()]
    total = assets_v1.PipelineStatus()
    for start in range(0, len(names) or 1, _LIBRARIES_PER_CALL):
        request = assets_v1.GetPipelineStatusRequest(
            libraries=names[start : start + _LIBRARIES_PER_CALL],
            omit_failed=omits_failed,
        )
        found = client.asset_service.GetPipelineStatus(request)
        total.waiting_images += found.waiting_images
        total.waiting_videos += found.waiting_videos
        total.running_assets += found.running_assets
        total.failed_assets += found.failed_assets
    return total


def rendition(client: Client, asset: str, what: str) -> Iterator[content_v1.ContentChunk]:
    """The bytes of what was made of an asset, by the short lowercase name of it."""
    chosen = f"RENDITION_{what.upper().replace('-', '_')}"
    request = content_v1.ReadRenditionRequest(name=asset, rendition=chosen)
    return iter(client.content_service.ReadRendition(request))


def find_file(client: Client, given: str, path: bytes) -> str:
    """The name of a file, given by it or by its absolute path."""
    if _FILE_NAME.fullmatch(given):
        return given
    inside = [one for one in client.libraries() if path.startswith(one.root_path + b"/")]
    # Of libraries within each other the innermost first, which holds it unless it was excluded.
    for library in sorted(inside, key=lambda one: len(one.root_path), reverse=True):
        rel_path = path[len(library.root_path) + 1 :]
        request = libraries_v1.ListFilesRequest(parent=library.name, rel_path=rel_path)
        for file in client.library_service.ListFiles(request).files:
            return file.name
    if not inside:
        raise CommandFailed(
            f"{display(path)} lies in no library; `mediaplane library list` shows them."
        )
    slugs = ", ".join(one.name.removeprefix("libraries/") for one in inside)
    raise CommandFailed(
        f"{display(path)} is not known. Is it there, and {slugs} scanned since it is?"
    )


def request_thumbnail(
    client: Client, file: str, size_px: int, form: str, group_key: str
) -> thumbnails_v1.Thumbnail:
    """Ask for a thumbnail, in a format by its short lowercase name."""
    request = thumbnails_v1.RequestThumbnailRequest(
        file=file, size_px=size_px, format=f"FORMAT_{form.upper()}", group_key=group_key
    )
    return client.thumbnail_service.RequestThumbnail(request)


def await_thumbnail(
    client: Client, thumbnail: thumbnails_v1.Thumbnail, timeout_seconds: float
) -> thumbnails_v1.Thumbnail:
    """Wait until a thumbnail can be read."""
    deadline, pause = time.monotonic() + timeout_seconds, _FIRST_PAUSE_SECONDS
    while thumbnail.state != thumbnails_v1.Thumbnail.STATE_READY:
        if thumbnail.state == thumbnails_v1.Thumbnail.STATE_FAILED:
            why = thumbnail.error_message or thumbnail.error_code
            raise CommandFailed(f"The thumbnail could not be made: {why}", thumbnail.error_code)
        if time.monotonic() > deadline:
            raise CommandFailed(
                f"{thumbnail.name} was not made within {timeout_seconds:g} s and still waits; ask"
                " again later, and see `mediaplane worker list`."
            )
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
        request = thumbnails_v1.GetThumbnailRequest(name=thumbnail.name)
        thumbnail = client.thumbnail_service.GetThumbnail(request)
    return thumbnail


def read_thumbnail(client: Client, name: str) -> Iterator[content_v1.ContentChunk]:
    """The bytes of a thumbnail."""
    return iter(client.content_service.ReadThumbnail(content_v1.ReadThumbnailRequest(name=name)))


def thumbnails(
    client: Client, *, file: str = "", group_key: str = "", limit: int | None = None
) -> Iterator[thumbnails_v1.Thumbnail]:
    """The thumbnails of a file or of a group."""
    request = thumbnails_v1.ListThumbnailsRequest(file=file, group_key=group_key)
    return pages(client.thumbnail_service.ListThumbnails, request, "thumbnails", limit)


def schedule_cleanup(client: Client, group_key: str, delay_seconds: float) -> Any:
    """Have the thumbnails of a group removed."""
    request = thumbnails_v1.ScheduleCleanupRequest(group_key=group_key)
    request.delay.FromMilliseconds(round(delay_seconds * 1000))
    return client.thumbnail_service.ScheduleCleanup(request)
