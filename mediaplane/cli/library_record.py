"""One library with its figures, settings and last scan, as `mediaplane library show` tells it."""

from typing import TYPE_CHECKING, Any

from mediaplane.cli import output
from mediaplane.cli.documents import enum_name, last_part, local_time

if TYPE_CHECKING:
    from mediaplane.client import Client


def figures(client: "Client", slug: str) -> dict[str, int]:
    """What is known of a library's files; a group counts where one of its files is in it."""
    rows = client.statistics().libraries
    totals = next((row for row in rows if last_part(row.library) == slug), None)
    groups = extra_copies = reclaimable_bytes = 0
    for group in client.duplicate_groups(library=slug):
        groups += 1
        extra_copies += group.file_count - 1
        reclaimable_bytes += group.reclaimable_bytes
    return {
        "files": totals.files if totals else 0,
        "bytes": totals.bytes if totals else 0,
        "errors": totals.errors if totals else 0,
        "groups": groups,
        "duplicate_files": extra_copies,
        "reclaimable_bytes": reclaimable_bytes,
    }


def fields(library: Any, known: dict[str, int]) -> list[tuple[str, str]]:
    """The lines for people."""
    copies = output.plural(known["duplicate_files"], "extra copy", "extra copies")
    return [
        ("Slug", last_part(library.name)),
        ("Name", library.display_name),
        ("Tenant", library.tenant),
        ("Path", library.root_path_display),
        ("Active", "yes" if library.is_active else "no, paused"),
        ("Status", enum_name(library, "scan_status")),
        ("Files", _amount(known["files"], known["bytes"])),
        ("Duplicates", f"{copies} in {output.plural(known['groups'], 'group')}"),
        ("Reclaimable", output.human_bytes(known["reclaimable_bytes"])),
        ("Errors", output.human_count(known["errors"])),
        *_settings(library),
        ("Added", local_time(library, "create_time")),
        *(_scan(library.last_scan) if library.HasField("last_scan") else ()),
    ]


def _settings(library: Any) -> list[tuple[str, str]]:
    smallest = library.min_size_bytes
    measure = enum_name(library.sampling_policy, "measure")
    return [
        ("Hashed files", enum_name(library, "hash_policy")),
        ("Hash algorithm", enum_name(library, "hash_algorithm")),
        ("Video frames", f"{library.sampling_limit} by {measure}"),
        ("Included", ", ".join(library.include_globs) or "all files"),
        ("Excluded", ", ".join(library.exclude_globs)),
        ("Hidden files", "passed over" if library.skips_hidden else "scanned"),
        ("Other disks", "entered" if library.crosses_filesystems else "not entered"),
        ("Smallest file", output.human_bytes(smallest) if smallest else ""),
    ]


def _scan(scan: Any) -> list[tuple[str, str]]:
    return [
        ("Last scan", f"{enum_name(scan, 'state')}, began {local_time(scan, 'start_time')}"),
        ("Scan error", scan.error_message),
        ("Found", _amount(scan.seen_files, scan.seen_bytes)),
        ("New", output.human_count(scan.new_files)),
        ("Changed", output.human_count(scan.changed_files)),
        ("Missing", output.human_count(scan.missing_files)),
        ("Unreadable", output.human_count(scan.errored_files)),
    ]


def _amount(files: int, size_bytes: int) -> str:
    return f"{output.human_count(files)}, {output.human_bytes(size_bytes)}"
