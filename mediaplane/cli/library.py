"""`mediaplane library`: the directories under care."""

import os
from enum import StrEnum
from typing import Annotated, Any

import typer

from mediaplane.cli import library_record, output, tenants
from mediaplane.cli.arguments import Slug, absolute
from mediaplane.cli.documents import enum_name, last_part, library_document
from mediaplane.cli.output import Json, Limit
from mediaplane.cli.session import Session, command
from mediaplane.cli.sizes import parse_size
from mediaplane.paths import display
from mediaplane.protocol.values import HashAlgorithm, HashPolicy

app = typer.Typer(
    name="library", no_args_is_help=True, help="Add, show, change and remove libraries."
)

Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include", metavar="GLOB", show_default=False,
        help="Scan only files like this, such as '*.jpg' or 'trips/**'; may be repeated.",
    ),
]  # fmt: skip
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="GLOB", show_default=False,
        help="Pass over files and folders like this, even included ones; may be repeated.",
    ),
]  # fmt: skip
SkipHidden = Annotated[
    bool | None,
    typer.Option(
        "--skip-hidden/--no-skip-hidden", show_default=False,
        help="Pass over names that begin with a dot, or not.",
    ),
]  # fmt: skip
CrossFilesystems = Annotated[
    bool | None,
    typer.Option(
        "--cross-filesystems/--no-cross-filesystems", show_default=False,
        help="Go on into other file systems mounted below PATH, or not.",
    ),
]  # fmt: skip
MinSize = Annotated[
    int | None,
    typer.Option(
        "--min-size", metavar="SIZE", parser=parse_size, show_default=False,
        help="Pass over smaller files, such as 500, 4k or 1M.",
    ),
]  # fmt: skip
HashedFiles = Annotated[
    HashPolicy | None,
    typer.Option(
        "--hash-policy", show_default=False,
        help="Hash only files that may have a duplicate, or all of them.",
    ),
]  # fmt: skip
Algorithm = Annotated[
    HashAlgorithm | None,
    typer.Option(
        "--hash-algorithm", show_default=False,
        help="What files are hashed with from now on; those hashed with another are hashed again."
        " Copies are found only among libraries with the same one.",
    ),
]  # fmt: skip


class FrameMeasure(StrEnum):
    """What tells how much two frames of a video differ."""

    MSE = "mse"
    SSIM = "ssim"


@command(
    app,
    "add",
    examples=[
        "mediaplane library add 'Holiday photos' ~/Pictures/holidays",
        "mediaplane library add Archive /mnt/archive --slug archive-2",
        "mediaplane library add Scans /srv/north/scans --tenant north",
        "mediaplane library add Photos ~/Pictures --include '*.jpg' --exclude cache --min-size 4k",
    ],
)
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for people.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="The directory with the files.")],
    slug: Annotated[
        str,
        typer.Option("--slug", help="The short name; made from NAME by default."),
    ] = "",
    tenant: Annotated[
        str,
        typer.Option(
            "--tenant",
            help="Whose library it is, if you see every tenant; else your own.",
            show_default=False,
        ),
    ] = "",
    include: Include = None,
    exclude: Exclude = None,
    skip_hidden: SkipHidden = None,
    cross_filesystems: CrossFilesystems = None,
    min_size: MinSize = None,
    hash_policy: HashedFiles = None,
    hash_algorithm: Algorithm = None,
    as_json: Json = False,
) -> None:
    """Put a directory under care. It is not read before the first scan.

    A GLOB with a slash is matched with the whole path below PATH, one without with the name alone;
    * stands for anything but a slash, ** for anything, ? for one character, [..] for one of a set.
    """
    settings = {
        "tenant": tenant or None,
        "include_globs": include or None,
        "exclude_globs": exclude or None,
        "skips_hidden": skip_hidden,
        "crosses_filesystems": cross_filesystems,
        "min_size_bytes": min_size,
        "hash_policy": _on_the_wire("HASH_POLICY", hash_policy),
        "hash_algorithm": _on_the_wire("HASH_ALGORITHM", hash_algorithm),
    }
    root = absolute(path)
    if not session.server_address and not os.path.isdir(root):
        raise typer.BadParameter(f"{display(root)} is not a directory.", param_hint="PATH")
    with session.client() as client:
        library = client.add_library(name, root, slug, **_given(settings))
        tenants.check(tenant, library)
    if as_json:
        output.json_document({"library": library_document(library)})
        return
    slug = last_part(library.name)
    output.say(f"Added {slug}: {library.root_path_display}")
    output.say(f"Next: mediaplane scan {slug}")


@command(app, "list", examples=["mediaplane library list", "mediaplane library list --json"])
def list_libraries(session: Session, limit: Limit = None, as_json: Json = False) -> None:
    """List the libraries."""
    with session.client() as client:
        output.listing(
            client.libraries(limit),
            noun="libraries",
            columns=["SLUG", "NAME", ">FILES", ">SIZE", "LAST SCAN", "PATH"],
            cells=_cells,
            document=library_document,
            as_json=as_json,
            empty="No library yet. Add one: mediaplane up PATH",
        )


@command(app, "show", examples=["mediaplane library show holidays"])
def show(session: Session, slug: Slug, as_json: Json = False) -> None:
    """Show one library: its files, duplicates, settings and last scan.

    Duplicates are those with a file in this library; their copies may be in others.
    """
    with session.client() as client:
        library = client.library(slug)
        known = library_record.figures(client, last_part(library.name))
    if as_json:
        output.json_document({"library": {**library_document(library), "figures": known}})
    else:
        output.record(library_record.fields(library, known))


@command(
    app,
    "set",
    examples=[
        "mediaplane library set holidays --exclude '*.tmp' --exclude cache --min-size 1M",
        "mediaplane library set holidays --include-all --no-skip-hidden",
        "mediaplane library set films --frames 50 --frame-measure ssim",
    ],
)
def set_settings(
    session: Session,
    slug: Slug,
    name: Annotated[
        str | None, typer.Option("--name", help="Another name for people.", show_default=False)
    ] = None,
    include: Include = None,
    include_all: Annotated[
        bool, typer.Option("--include-all", help="Drop the patterns of --include.")
    ] = False,
    exclude: Exclude = None,
    exclude_none: Annotated[
        bool, typer.Option("--exclude-none", help="Drop the patterns of --exclude.")
    ] = False,
    skip_hidden: SkipHidden = None,
    cross_filesystems: CrossFilesystems = None,
    min_size: MinSize = None,
    hash_policy: HashedFiles = None,
    hash_algorithm: Algorithm = None,
    frames: Annotated[
        int | None,
        typer.Option(
            "--frames", metavar="N", min=1, help="Most frames that represent a video.",
            show_default=False,
        ),
    ] = None,
    frame_measure: Annotated[
        FrameMeasure | None,
        typer.Option("--frame-measure", help="What they are chosen by.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Change what a library is called, what its scans look at, and how its videos are shown.

    Patterns take the place of those there were. `library add --help` tells how they are written.
    """
    settings = {
        "display_name": name,
        "include_globs": _patterns(include, "--include", is_emptied=include_all),
        "exclude_globs": _patterns(exclude, "--exclude", is_emptied=exclude_none),
        "skips_hidden": skip_hidden,
        "crosses_filesystems": cross_filesystems,
        "min_size_bytes": min_size,
        "hash_policy": _on_the_wire("HASH_POLICY", hash_policy),
        "hash_algorithm": _on_the_wire("HASH_ALGORITHM", hash_algorithm),
        "sampling_limit": frames,
        "sampling_policy": {"measure": _on_the_wire("MEASURE", frame_measure)}
        if frame_measure
        else None,
    }
    changes = _given(settings)
    if not changes:
        raise typer.BadParameter("say what to change, such as --min-size 1M; --help lists it all.")
    _change(session, slug, "Changed", as_json=as_json, **changes)


@command(app, "pause", examples=["mediaplane library pause holidays"])
def pause(session: Session, slug: Slug, as_json: Json = False) -> None:
    """Keep a library from new scans and hashes; what is known of it stays."""
    _change(session, slug, "Paused", as_json=as_json, is_active=False)


@command(app, "resume", examples=["mediaplane library resume holidays"])
def resume(session: Session, slug: Slug, as_json: Json = False) -> None:
    """Let a paused library take part in new scans and hashes again."""
    _change(session, slug, "Resumed", as_json=as_json, is_active=True)


@command(app, "remove", examples=["mediaplane library remove holidays"])
def remove(session: Session, slug: Slug, as_json: Json = False) -> None:
    """Move a library to the trash, with all that is known of it. No file is touched."""
    with session.client() as client:
        library = client.remove_library(slug)
    if as_json:
        output.json_document({"library": library_document(library)})
        return
    slug = last_part(library.name)
    output.say(f"Moved {slug} to the trash; no file in {library.root_path_display} is touched.")
    output.say(f"Bring it back: mediaplane library restore {slug}")
    output.say(f"Forget it for good: mediaplane trash empty {slug}")


@command(app, "restore", examples=["mediaplane library restore holidays"])
def restore(session: Session, slug: Slug, as_json: Json = False) -> None:
    """Take a library out of the trash, with all that is known of it."""
    with session.client() as client:
        library = client.restore_library(slug)
    _show_done("Restored", library, as_json=as_json)


def _change(session: Session, slug: str, done: str, *, as_json: bool, **settings: Any) -> None:
    with session.client() as client:
        library = client.change_library(slug, **settings)
    _show_done(done, library, as_json=as_json)


def _show_done(done: str, library: Any, *, as_json: bool) -> None:
    if as_json:
        output.json_document({"library": library_document(library)})
    else:
        output.say(f"{done} {last_part(library.name)}")


def _on_the_wire(prefix: str, value: StrEnum | None) -> str | None:
    return None if value is None else f"{prefix}_{value.name}"


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _patterns(given: list[str] | None, option: str, *, is_emptied: bool) -> list[str] | None:
    if given and is_emptied:
        raise typer.BadParameter("give patterns or drop them, not both.", param_hint=option)
    return [] if is_emptied else given or None


def _cells(library: Any) -> list[str]:
    has_scan = library.HasField("last_scan")
    scan = library.last_scan
    return [
        last_part(library.name),
        library.display_name,
        output.human_count(scan.seen_files) if has_scan else "",
        output.human_bytes(scan.seen_bytes) if has_scan else "",
        enum_name(scan, "state") if has_scan else "never",
        library.root_path_display,
    ]
