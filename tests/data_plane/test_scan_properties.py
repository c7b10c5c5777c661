"""Whatever happened between two scans, the second reports exactly the difference."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_plane.executor import Seen
from tests.support.privileges import as_nobody, public_folder
from tests.support.scanning import MemoryReport, put, scanned, seen

# Names around the slash, which sorts between '.' and '0', and names that are no text.
NAMES = [b"a", b"a-", b"a-b", b"a.b", b"a0", b"b", b"A", b"\xff", b"a\n"]
MINUTE_NS = 60 * 10**9

# A tree: path → size and minute of the last change.
Tree = dict[bytes, tuple[int, int]]

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(b"/".join)
versions = st.tuples(st.integers(0, 2), st.integers(1, 2))
drawn_trees = st.dictionaries(paths, versions, max_size=12)
quickly = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def root() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder


def possible(drawn: Tree) -> Tree:
    """The drawn tree without the files whose names other paths need as folders."""
    folders = {b"/".join(parts[:end]) for parts in split(drawn) for end in range(1, len(parts))}
    return {path: version for path, version in drawn.items() if path not in folders}


def split(tree: Tree) -> list[list[bytes]]:
    return [path.split(b"/") for path in tree]


def lay_out(root: Path, before: Tree, after: Tree) -> None:
    """Change one tree into the other, leaving alone what is the same in both."""
    for path in before.keys() - after.keys():
        os.unlink(os.path.join(bytes(root), path))
    for folder, _, _ in os.walk(bytes(root), topdown=False):
        if folder != bytes(root) and not os.listdir(folder):
            os.rmdir(folder)
    for path, (size, minute) in after.items():
        if before.get(path) != (size, minute):
            put(root, path, b"x" * size)
            changed_at = minute * MINUTE_NS
            os.utime(os.path.join(bytes(root), path), ns=(changed_at, changed_at))


def clear(root: Path) -> None:
    for child in root.iterdir():
        if child.is_dir():
            child.chmod(0o700)
            shutil.rmtree(child)
        else:
            child.unlink()


def stats(root: Path, tree: Tree) -> dict[bytes, Seen]:
    return {path: seen(root, path) for path in tree}


@quickly
@given(drawn_before=drawn_trees, drawn_after=drawn_trees)
def test_a_scan_reports_what_a_plain_comparison_finds(
    root: Path, drawn_before: Tree, drawn_after: Tree
) -> None:
    clear(root)
    before, after = possible(drawn_before), possible(drawn_after)
    lay_out(root, {}, before)
    first = scanned(root)
    was = stats(root, before)
    lay_out(root, before, after)
    now = stats(root, after)
    second = scanned(root, first.taken_over())
    assert second.changed == sorted(file for path, file in now.items() if was.get(path) != file)
    assert second.missing == sorted(was[path] for path in was.keys() - now.keys())
    third = scanned(root, second.taken_over())
    assert (third.changed, third.missing, third.unseen) == ([], [], [])


@quickly
@given(drawn_before=drawn_trees, drawn_after=drawn_trees, shut=st.sampled_from(NAMES))
def test_nothing_in_a_folder_that_cannot_be_opened_is_called_missing(
    root: Path, drawn_before: Tree, drawn_after: Tree, shut: bytes
) -> None:
    clear(root)
    before, after = possible(drawn_before), possible(drawn_after | {shut + b"/inside": (1, 1)})
    lay_out(root, {}, before)
    known = scanned(root).taken_over()
    was = stats(root, before)
    lay_out(root, before, after)
    now = stats(root, after)
    os.chmod(os.path.join(bytes(root), shut), 0)

    def look() -> MemoryReport:
        report = scanned(root, known)
        del report.meddle  # a function cannot be sent from one process to another
        return report

    report = as_nobody(look)
    hidden = shut + b"/"
    assert report.unseen_codes == {shut: "permission_denied"}
    assert set(report.missing_paths) == {
        path for path in was.keys() - now.keys() if not path.startswith(hidden)
    }
    assert report.changed == sorted(
        file for path, file in now.items() if was.get(path) != file and not path.startswith(hidden)
    )
