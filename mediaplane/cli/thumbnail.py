"""`mediaplane thumbnail`: pictures of files in any size."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mediaplane.cli import output, saving
from mediaplane.cli.arguments import absolute
from mediaplane.cli.documents import document, enum_name, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.saving import Target
from mediaplane.cli.session import Session, command
from mediaplane.protocol.values import ThumbnailFormat

if TYPE_CHECKING:
    from mediaplane.client import Client

app = typer.Typer(name="thumbnail", no_args_is_help=True, help="Make and show thumbnails.")

_FORMATS = {
    ".webp": ThumbnailFormat.WEBP,
    ".jpg": ThumbnailFormat.JPEG,
    ".jpeg": ThumbnailFormat.JPEG,
}

_DEGRADED = "Part of the file could not be decoded; the picture shows the rest."

FileOption = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A file in a library: its path, or libraries/SLUG/files/NUMBER.",
        show_default=False,
    ),
]
Group = Annotated[
    str,
    typer.Option(
        "--group", metavar="KEY", help="What thumbnails are cleaned up by; the file by default."
    ),
]


@command(
    app,
    "get",
    examples=[
        "mediaplane thumbnail get ~/Pictures/cat.heic --output cat.webp",
        "mediaplane thumbnail get film.mp4 --size 1024 --output - > poster.jpg",
    ],
)
def get(
    session: Session,
    file: FileOption,
    target: Target,
    size_px: Annotated[
        int,
        typer.Option("--size", metavar="PIXELS", min=16, max=4096, help="Most of its longer side."),
    ] = 320,
    form: Annotated[
        ThumbnailFormat | None,
        typer.Option(
            "--format", help="File format; by default as --output ends, else jpeg.",
            show_default=False,
        ),
    ] = None,
    group: Group = "",
    timeout_seconds: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer.")
    ] = 60.0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Have a thumbnail of a file made, unless there is one, and write it to a file.

    Pictures are never enlarged.
    """
    saving.check_json(target, as_json=as_json)
    chosen = form or _format_of(target)
    with session.client(works=True) as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        saving.check_is_outside(client, target)
        name = media.find_file(client, file, absolute(file))
        asked = media.request_thumbnail(client, name, size_px, chosen, group)
        made = _await(client, asked, timeout_seconds)
        size_bytes = saving.save(media.read_thumbnail(client, made.name), target)
    saving.report(target, size_bytes, {"thumbnail": document(made)}, as_json=as_json)
    if made.degraded:
        output.tell(_DEGRADED)


@command(
    app,
    "list",
    examples=[
        "mediaplane thumbnail list ~/Pictures/cat.heic",
        "mediaplane thumbnail list --group gallery --json",
    ],
)
def list_thumbnails(
    session: Session,
    file: FileOption = "",
    group: Annotated[str, typer.Option("--group", metavar="KEY", help="Those of a group.")] = "",
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the thumbnails of a file or of a group, oldest first."""
    if bool(file) == bool(group):
        raise typer.BadParameter("name a file, or a group with --group.")
    with session.client() as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        name = media.find_file(client, file, absolute(file)) if file else ""
        output.listing(
            media.thumbnails(client, file=name, group_key=group, limit=limit),
            noun="thumbnails",
            columns=["ID", "FORMAT", ">LIMIT", "STATE", "MEASURES", ">SIZE", "FILE", "REMARK"],
            cells=_cells,
            document=document,
            as_json=as_json,
            empty="No thumbnails.",
        )


@command(
    app,
    "clean",
    examples=[
        "mediaplane thumbnail clean gallery",
        "mediaplane thumbnail clean libraries/holidays/files/12 --delay 3600",
    ],
)
def clean(
    session: Session,
    group: Annotated[
        str,
        typer.Argument(
            metavar="GROUP_KEY", help="The group given when they were made; else a file's name."
        ),
    ],
    delay_seconds: Annotated[
        float, typer.Option("--delay", metavar="SECONDS", min=0, help="Not before this.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Have the thumbnails of a group removed from the cache, once none of them is being made.

    No file in a library is touched.
    """
    with session.client() as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        cleanup = media.schedule_cleanup(client, group, delay_seconds)
    if as_json:
        output.json_document({"cleanup": document(cleanup)})
    else:
        output.say(f"The thumbnails of {group} will be removed by the next worker that is free.")


def _await(client: "Client", asked: Any, timeout_seconds: float) -> Any:
    """Wait for a thumbnail; where nobody is there to make it, say so."""
    from mediaplane import media  # noqa: PLC0415 - imports gRPC
    from mediaplane.cli.pipeline import decodes_media  # noqa: PLC0415
    from mediaplane.client import CommandFailed  # noqa: PLC0415

    try:
        return media.await_thumbnail(client, asked, timeout_seconds)
    except CommandFailed as error:
        if error.reason or decodes_media(client):
            raise
        raise CommandFailed(
            f"{error} No worker that decodes media is running: start one without --no-media, and"
            " with MEDIAPLANE_IMAGE_SLOTS and MEDIAPLANE_VIDEO_SLOTS above 0."
        ) from None


def _format_of(target: str) -> ThumbnailFormat:
    ending = target[target.rfind(".") :].lower() if "." in target else ""
    return _FORMATS.get(ending, ThumbnailFormat.JPEG)


def _cells(thumbnail: Any) -> list[str]:
    is_made = thumbnail.width > 0
    remark = thumbnail.error_message or thumbnail.error_code
    if thumbnail.degraded:
        remark = _DEGRADED
    if thumbnail.HasField("retry_time"):
        remark += f" Not again before {local_time(thumbnail, 'retry_time')}."
    return [
        last_part(thumbnail.name),
        enum_name(thumbnail, "format"),
        str(thumbnail.size_px),
        enum_name(thumbnail, "state"),
        f"{thumbnail.width} x {thumbnail.height}" if is_made else "",
        output.human_bytes(thumbnail.size_bytes) if is_made else "",
        thumbnail.file,
        remark,
    ]
