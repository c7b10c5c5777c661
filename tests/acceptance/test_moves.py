"""Files that are moved in the file system keep their rows: scans of real trees, taken over."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_plane.catalogue import scan_task
from data_plane.executors.scan import scan
from mediaplane.protocol.driver import Row
from tests.support import worker
from tests.support.databases import Databases
from tests.support.files import add_library
from tests.support.planes import control_loops
from tests.support.reports import files_of
from tests.support.rows import Rows
from tests.support.scanning import context, put

MANY = 3000


class Tree:
    """A library on the disk, and what scans of it made known."""

    def __init__(self, database: Databases, root: Path, slug: str = "photos") -> None:
        self.database = database
        self.root = root
        self.slug = slug
        root.mkdir(exist_ok=True)
        with database.control.write() as conn:
            add_library(conn, slug, absolute_path=bytes(root))

    def put(self, *names: str, content: bytes | None = None) -> None:
        for name in names:
            put(self.root, name.encode(), name.encode() if content is None else content)

    def rename(self, old: str, new: str) -> None:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)

    def scan(self) -> dict[str, int]:
        """Scan it, and return the id of every file that is there by name."""
        with self.database.control.write() as conn:
            payload = {"library": self.slug}
            Rows(conn).add("jobs", kind="scan", library_id=self.slug, payload=payload)
        job = worker.claim(self.database.data)
        with control_loops(self.database):
            scan(scan_task(self.database.data, job), context())
        worker.finish(self.database.data, job, "complete")
        return {name: row["id"] for name, row in self.rows().items() if not row["is_missing"]}

    def rows(self) -> dict[str, Row]:
        return {path.decode(): row for path, row in files_of(self.database, self.slug).items()}

    def names(self) -> set[str]:
        """What is on the disk, by other means."""
        paths = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)) for path in paths}


@pytest.fixture
def tree(database: Databases, tmp_path: Path) -> Tree:
    return Tree(database, tmp_path / "photos")


@pytest.mark.parametrize("new", ["0", "z", "folder/a", "a.bak"])
def test_a_renamed_file_keeps_its_row(tree: Tree, new: str) -> None:
    tree.put("a", "b")
    before = tree.scan()
    tree.rename("a", new)
    assert tree.scan() == {new: before["a"], "b": before["b"]}
    assert tree.rows().keys() == {new, "b"}, "nothing is left at the old name"


def test_two_files_that_swap_names_swap_rows(tree: Tree) -> None:
    tree.put("a", "b")
    before = tree.scan()
    tree.rename("a", "c")
    tree.rename("b", "a")
    tree.rename("c", "b")
    assert tree.scan() == {"a": before["b"], "b": before["a"]}


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "b", "a")])
def test_a_chain_of_renames_is_followed(tree: Tree, names: tuple[str, str, str]) -> None:
    first, second, third = names
    tree.put(first, second)
    before = tree.scan()
    tree.rename(second, third)
    tree.rename(first, second)
    assert tree.scan() == {third: before[second], second: before[first]}


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("b", "a")])
def test_a_file_renamed_over_another_keeps_its_row_and_the_other_is_missing(
    tree: Tree, old: str, new: str
) -> None:
    tree.put(old, new)
    before = tree.scan()
    tree.rename(old, new)
    assert tree.scan() == {new: before[old]}
    assert tree.rows()[old]["id"] == before[new]
    assert tree.rows()[old]["is_missing"]


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("b", "a")])
def test_a_file_that_gave_its_name_to_a_new_one_keeps_its_row(
    tree: Tree, old: str, new: str
) -> None:
    tree.put(old)
    before = tree.scan()
    tree.rename(old, new)
    tree.put(old, content=b"another")
    after = tree.scan()
    assert after[new] == before[old]
    assert after.keys() == {old, new}


def test_a_file_that_is_renamed_and_rewritten_is_a_new_one(tree: Tree) -> None:
    tree.put("a")
    before = tree.scan()
    tree.rename("a", "b")
    tree.put("b", content=b"other content")
    assert before["a"] not in tree.scan().values()
    assert tree.rows()["a"]["is_missing"]


def test_hard_links_are_no_moves(tree: Tree) -> None:
    tree.put("a")
    first = tree.scan()
    os.link(tree.root / "a", tree.root / "b")
    second = tree.scan()
    assert second["a"] == first["a"]
    (tree.root / "a").unlink()
    assert tree.scan() == {"b": second["b"]}, "a name that was known has its own row"
    os.link(tree.root / "b", tree.root / "c")
    os.link(tree.root / "b", tree.root / "d")
    (tree.root / "b").unlink()
    assert second["b"] not in tree.scan().values(), "which of two new names would it be?"


def test_a_moved_folder_of_very_many_files_keeps_all_rows(tree: Tree) -> None:
    tree.put("stays", *(f"old/{number}" for number in range(MANY)))
    before = tree.scan()
    tree.rename("old", "new/place")
    after = tree.scan()
    assert after == {name.replace("old/", "new/place/"): row for name, row in before.items()}
    assert tree.rows().keys() == after.keys()


def test_another_library_with_the_same_files_does_not_hide_a_move(
    tree: Tree, database: Databases
) -> None:
    tree.put("folder/a")
    inner = Tree(database, tree.root / "folder", "inner")
    before, inner_before = tree.scan(), inner.scan()
    inner.rename("a", "b")
    assert tree.scan() == {"folder/b": before["folder/a"]}
    assert inner.rows()["a"]["id"] == inner_before["a"], "it was not scanned yet"
    assert inner.scan() == {"b": inner_before["a"]}


NAMES = ["a", "b", "c", "d/a", "d/b", "e/a"]
deeds = st.lists(
    st.tuples(
        st.sampled_from(["rename", "rename", "delete", "create"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=8,
)


def do(tree: Tree, deed: str, name: str, other: str, rows: dict[str, int | None]) -> None:
    """Do something to the tree, and to `rows` what should become of its rows."""
    if deed == "create":
        tree.put(name, content=os.urandom(8))
        # Written into an old file it has that file's row; what the scan makes of it is free.
        rows[name] = None
    elif name not in rows or name == other:
        return
    elif deed == "delete":
        (tree.root / name).unlink()
        del rows[name]
    else:
        tree.rename(name, other)
        rows[other] = rows.pop(name)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(begun=st.sets(st.sampled_from(NAMES)), rounds=st.lists(deeds, min_size=1, max_size=2))
def test_whatever_is_renamed_keeps_its_row_and_the_listing_is_the_tree(
    database: Databases,
    tmp_path_factory: pytest.TempPathFactory,
    begun: set[str],
    rounds: list[list[tuple[str, str, str]]],
) -> None:
    root = tmp_path_factory.mktemp("tree")
    tree = Tree(database, root, root.name.replace("_", "-"))
    tree.put("stays", *begun)
    known = tree.scan()
    for round_ in rounds:
        expected: dict[str, int | None] = dict(known)
        for deed, name, other in round_:
            do(tree, deed, name, other, expected)
        known = tree.scan()
        assert known.keys() == tree.names()
        kept = {name: row for name, row in expected.items() if row is not None}
        assert {name: known[name] for name in kept} == kept
