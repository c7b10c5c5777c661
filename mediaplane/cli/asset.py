"""`mediaplane asset`: the images and videos of a library, and what was made of them."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from mediaplane.cli import output, saving
from mediaplane.cli.arguments import Slug
from mediaplane.cli.documents import document, enum_name, file_document, last_part, local_time
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.saving import Target
from mediaplane.cli.session import Session, command

app = typer.Typer(name="asset", no_args_is_help=True, help="Show images and videos.")

AssetId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The number that `asset list` shows, or libraries/SLUG/assets/NUMBER."
    ),
]


class AtRest(StrEnum):
    """States in which an asset waits for nobody, though it is not processed."""

    FAILED = "failed"
    POISONED = "poisoned"


class Rendition(StrEnum):
    """What is made of every asset; the last two of videos alone."""

    THUMBNAIL = "thumbnail"
    PROXY = "proxy"
    SPRITE = "sprite"
    SPRITE_INDEX = "sprite-index"


@command(
    app,
    "list",
    examples=[
        "mediaplane asset list holidays",
        "mediaplane asset list holidays --only failed",
        "mediaplane asset list holidays --json",
    ],
)
def list_assets(
    session: Session,
    slug: Slug,
    only: Annotated[
        AtRest | None,
        typer.Option("--only", help="Only those that could not be processed, with the reason."),
    ] = None,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the images and videos of a library and how far each is processed."""
    with session.client() as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        output.listing(
            media.assets(client, slug, limit, only or "unspecified"),
            noun="assets",
            columns=["ID", "TYPE", "STATE", ">SIZE", "PATH", *(["REASON"] if only else [])],
            cells=lambda asset: [*_cells(asset), *([asset.error_message] if only else [])],
            document=file_document,
            as_json=as_json,
            empty=f"No asset is {only}." if only else "No image or video. Scan the library first?",
        )


@command(
    app,
    "show",
    examples=["mediaplane asset show 12", "mediaplane asset show libraries/holidays/assets/12"],
)
def show(session: Session, asset_id: AssetId, as_json: Json = False) -> None:
    """Show one image or video: its measures, and how far it is processed."""
    with session.client() as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        asset = media.find_asset(client, asset_id)
    if as_json:
        output.json_document({"asset": file_document(asset)})
    else:
        output.record(_fields(asset))


@command(
    app,
    "frames",
    examples=[
        "mediaplane asset frames 12 --json",
        "mediaplane asset frames 12 --contact-sheet sheet.jpg",
    ],
)
def list_frames(
    session: Session,
    asset_id: AssetId,
    sheet: Annotated[
        str | None,
        typer.Option(
            "--contact-sheet", metavar="FILE", help="Write all of them as one picture instead.",
            show_default=False, callback=saving.checked,
        ),
    ] = None,
    limit: Limit = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """List the frames that represent a video."""
    if sheet:
        get(session, asset_id, sheet, Rendition.SPRITE, as_json)
        return
    with session.client() as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        output.listing(
            media.frames(client, media.find_asset(client, asset_id).name, limit),
            noun="frames",
            columns=[">TIME", "KEYFRAME"],
            cells=lambda frame: [_moment(frame.timestamp_ms), "yes" if frame.keyframe else "no"],
            document=document,
            as_json=as_json,
            empty="No frames. Is it a video, and processed?",
        )


@command(
    app,
    "get",
    examples=[
        "mediaplane asset get 12 --output preview.jpg",
        "mediaplane asset get 12 --rendition thumbnail --output -",
    ],
)
def get(
    session: Session,
    asset_id: AssetId,
    target: Target,
    rendition: Annotated[
        Rendition, typer.Option("--rendition", help="What of it to write.")
    ] = Rendition.PROXY,
    as_json: Json = False,
) -> None:
    """Write what was made of an image or video to a file."""
    saving.check_json(target, as_json=as_json)
    with session.client(works=True) as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        saving.check_is_outside(client, target)
        asset = media.find_asset(client, asset_id)
        size_bytes = saving.save(media.rendition(client, asset.name, rendition), target)
    saving.report(target, size_bytes, {"asset": file_document(asset)}, as_json=as_json)


@command(
    app,
    "retry",
    examples=["mediaplane asset retry 12", "mediaplane asset retry --library holidays"],
)
def retry(
    session: Session,
    asset_id: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="The asset, by its number; whether it failed or not.",
            show_default=False,
        ),
    ] = "",
    library: Annotated[
        str,
        typer.Option("--library", metavar="SLUG", help="All that failed in this library."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Process again what failed, or one asset of which what was made is lost."""
    if bool(asset_id) == bool(library):
        raise typer.BadParameter("name one asset, or a library with --library.")
    with session.client() as client:
        from mediaplane import media  # noqa: PLC0415 - imports gRPC

        if asset_id:
            media.retry_asset(client, media.find_asset(client, asset_id).name)
        count = 1 if asset_id else media.retry_assets(client, library)
    if as_json:
        output.json_document({"retried_assets": count})
    else:
        output.say(f"{output.plural(count, 'asset')} will be processed again.")


def _cells(asset: Any) -> list[str]:
    return [
        last_part(asset.name),
        enum_name(asset, "type"),
        enum_name(asset, "state"),
        output.human_bytes(asset.size_bytes),
        asset.rel_path_display,
    ]


def _fields(asset: Any) -> list[tuple[str, str]]:
    poster = asset.duration_ms and _moment(asset.poster_timestamp_ms)
    return [
        ("Asset", asset.name),
        ("Path", asset.rel_path_display),
        ("Type", enum_name(asset, "type")),
        ("State", enum_name(asset, "state")),
        ("Size", output.human_bytes(asset.size_bytes)),
        ("Measures", f"{asset.width} x {asset.height} pixels" if asset.width else ""),
        ("Duration", _moment(asset.duration_ms) if asset.duration_ms else ""),
        ("Poster at", poster or ""),
        ("Degraded", "yes, part of it could not be decoded" if asset.degraded else ""),
        ("Attempts", output.human_count(asset.retry_count) if asset.retry_count else ""),
        ("Last error", asset.error_message or asset.error_code),
        ("Found", local_time(asset, "create_time")),
        ("Changed", local_time(asset, "update_time")),
    ]


def _moment(milliseconds: int) -> str:
    """1:02:03.004."""
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}.{rest:03d}"
