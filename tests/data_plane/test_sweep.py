"""The sweep removes derivatives whose row is gone, and never anything that is not one."""

import logging
import os
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_plane.cache import AssetFile, Owner, SweepTask, asset_path, row_of, thumbnail_path
from data_plane.derivatives import sweep_task
from data_plane.executor import Cancelled, Context, Control, Fail, Interrupted, LeaseLost
from data_plane.executors import sweep as sweep_module
from data_plane.executors.sweep import sweep
from data_plane.jail import Jail
from mediaplane.protocol.values import ThumbnailFormat
from tests.support import tree
from tests.support.databases import Databases
from tests.support.rows import Rows

GONE = 999_001


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@pytest.fixture
def media(tmp_path: Path) -> Path:
    """A folder with files named as derivatives are, which nobody may touch."""
    folder = tmp_path / "media"
    for name in ("001", "thumbnails/001", f"001/{GONE}", str(GONE)):
        (folder / name).mkdir(parents=True)
        for file in (*AssetFile, f"{GONE}.jpeg"):
            (folder / name / file).write_bytes(b"the only copy")
    return folder


def put(state: Path, path: str, content: bytes = b"picture") -> Path:
    file = state / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def put_orphans(state: Path) -> list[Path]:
    files = [put(state, asset_path(GONE, file, "1-2")) for file in AssetFile]
    return files + [put(state, thumbnail_path(GONE, form)) for form in ThumbnailFormat]


def context(state: Path, control: Control | None = None) -> Context:
    return Context(control or Control(), Jail, state=bytes(state))


def swept(
    state: Path,
    roots: Collection[Path] = (),
    known: Callable[[Owner, Collection[int]], set[int]] = lambda _owner, _ids: set(),
) -> Control:
    """Sweep a cache of which no row is known, unless said otherwise."""
    control = Control()
    sweep(SweepTask([bytes(root) for root in roots], known), context(state, control))
    return control


def test_what_has_a_row_stays_and_what_has_none_goes(database: Databases, state: Path) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        asset, thumbnail = rows.add("assets"), rows.add("thumbnails")
    kept = [put(state, asset_path(asset, file, "1-2")) for file in AssetFile]
    kept += [put(state, thumbnail_path(thumbnail, form)) for form in ThumbnailFormat]
    orphans = put_orphans(state)
    control = Control()
    sweep(sweep_task(database.data, None), context(state, control))
    assert [file for file in kept if not file.exists()] == []
    assert [file for file in orphans if file.exists()] == []
    assert control.items == len(orphans)
    assert control.bytes == len(orphans) * len(b"picture")


def test_an_asset_and_a_thumbnail_with_the_same_number_are_not_confused(
    database: Databases, state: Path
) -> None:
    with database.control.write() as conn:
        thumbnail = Rows(conn).add("thumbnails")
    asset_file = put(state, asset_path(thumbnail, AssetFile.PROXY, "1-2"))
    picture = put(state, thumbnail_path(thumbnail, ThumbnailFormat.WEBP))
    sweep(sweep_task(database.data, None), context(state))
    assert picture.exists()
    assert not asset_file.exists()


def test_the_folder_of_a_gone_asset_goes_and_that_of_its_shard_stays(state: Path) -> None:
    folder = put(state, asset_path(GONE, AssetFile.PROXY, "1-2")).parent
    swept(state)
    assert not folder.exists()
    assert folder.parent.is_dir()


def test_an_empty_folder_of_an_asset_that_is_known_stays(state: Path) -> None:
    folder = state / asset_path(GONE, AssetFile.PROXY, "1-2")
    folder.parent.mkdir(parents=True)
    swept(state, known=lambda _owner, ids: set(ids))
    assert folder.parent.is_dir()


def test_a_row_that_comes_with_its_file_during_the_sweep_keeps_it(state: Path) -> None:
    """The database is asked after the folder was listed, so no file is ahead of its row."""
    put_orphans(state)
    written: list[Path] = []

    def known(owner: Owner, ids: Collection[int]) -> set[int]:
        if owner is Owner.THUMBNAILS:
            written.append(put(state, thumbnail_path(GONE + 1000, ThumbnailFormat.JPEG)))
        return set()

    swept(state, known=known)
    assert written
    assert written[0].exists()


def test_more_names_than_a_batch_are_asked_for_in_batches(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "BATCH", 3)
    asked: list[int] = []

    def known(_owner: Owner, ids: Collection[int]) -> set[int]:
        asked.append(len(ids))
        return set()

    files = [put(state, thumbnail_path(1000 * n, ThumbnailFormat.JPEG)) for n in range(1, 9)]
    assert swept(state, known=known).items == 8
    assert asked == [3, 3, 2]
    assert not any(file.exists() for file in files)


@pytest.mark.parametrize(
    "path",
    [
        "cache/notes.txt",
        "cache/thumbnails/001/notes.txt",
        f"cache/thumbnails/001/{GONE}.jpeg.part",
        f"cache/thumbnails/001/0{GONE}.jpeg",
        f"cache/thumbnails/002/{GONE}.jpeg",
        f"cache/thumbnails/{GONE}.jpeg",
        "cache/thumbnails/999/9999999999999999999.jpeg",
        f"cache/assets/001/{GONE}.jpeg",
        f"cache/assets/001/{GONE}/holiday.jpeg",
        f"cache/assets/001/{GONE}/proxy/inner",
        f"cache/assets/002/{GONE}/proxy",
        f"cache/videos/001/{GONE}.jpeg",
        f"scratch/{GONE}.jpeg",
    ],
)
def test_a_name_that_is_not_ours_is_left_alone(state: Path, path: str) -> None:
    file = put(state, path)
    assert swept(state).items == 0
    assert file.exists()


def test_names_that_are_not_ours_are_counted_in_the_log(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(state, "cache/thumbnails/notes.txt")
    put(state, "cache/thumbnails/001/notes.txt")
    put(state, f"cache/assets/001/{GONE}/holiday.jpeg")
    with caplog.at_level(logging.WARNING):
        swept(state)
    assert "Left alone 3 names in the cache that are not ours" in caplog.text


def test_without_a_cache_there_is_nothing_to_do(state: Path) -> None:
    assert swept(state).items == 0
    (state / "cache").mkdir()
    assert swept(state).items == 0


@pytest.mark.parametrize("path", ["cache", "cache/assets", "cache/thumbnails"])
def test_a_link_in_place_of_the_cache_is_refused(state: Path, media: Path, path: str) -> None:
    before = tree.snapshot(media)
    link = state / path
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(media)
    with pytest.raises(Fail, match="symbolic link") as failed:
        swept(state)
    assert failed.value.code == "cache_refused"
    assert tree.snapshot(media) == before


@pytest.mark.parametrize(
    "path",
    [
        "cache/assets/001",
        f"cache/assets/001/{GONE}",
        f"cache/assets/001/{GONE}/proxy",
        "cache/thumbnails/001",
        f"cache/thumbnails/001/{GONE}.jpeg",
    ],
)
def test_a_link_in_the_cache_is_neither_followed_nor_removed(
    state: Path, media: Path, path: str
) -> None:
    before = tree.snapshot(media)
    link = state / path
    link.parent.mkdir(parents=True)
    is_file = "." in link.name or link.name == "proxy"
    link.symlink_to(media / "001" / f"{GONE}.jpeg" if is_file else media / link.name)
    assert link.exists()
    assert swept(state).items == 0
    assert link.is_symlink()
    assert tree.snapshot(media) == before


@pytest.mark.parametrize("path", ["cache", "cache/thumbnails"])
def test_a_folder_replaced_by_a_link_during_the_sweep_ends_it(
    state: Path, media: Path, path: str
) -> None:
    put_orphans(state)
    before = tree.snapshot(media)
    replaced: list[Path] = []

    def known(owner: Owner, _ids: Collection[int]) -> set[int]:
        assert owner is Owner.ASSETS  # the thumbnails are never reached
        replaced.append((state / path).rename(state / "before"))
        (state / path).symlink_to(media)
        return set()

    with pytest.raises(Fail, match="symbolic link"):
        swept(state, known=known)
    assert replaced
    assert tree.snapshot(media) == before


def test_an_asset_folder_replaced_by_a_link_before_its_removal_is_passed_over(
    state: Path, media: Path
) -> None:
    folder = put(state, asset_path(GONE, AssetFile.PROXY, "1-2")).parent
    before = tree.snapshot(media)
    replaced: list[Path] = []

    def known(_owner: Owner, _ids: Collection[int]) -> set[int]:
        replaced.append(folder.rename(state / "before"))
        folder.symlink_to(media / str(GONE))
        return set()

    assert swept(state, known=known).items == 0
    assert replaced
    assert folder.is_symlink()
    assert tree.snapshot(media) == before


def test_an_open_folder_whose_name_becomes_a_link_is_swept_itself(state: Path, media: Path) -> None:
    orphan = put(state, thumbnail_path(GONE, ThumbnailFormat.JPEG))
    before = tree.snapshot(media)

    def known(_owner: Owner, _ids: Collection[int]) -> set[int]:
        orphan.parent.rename(state / "before")
        orphan.parent.symlink_to(media / "thumbnails" / "001")
        return set()

    assert swept(state, known=known).items == 1
    assert list((state / "before").iterdir()) == []
    assert tree.snapshot(media) == before


@pytest.mark.parametrize("path", [".", "cache", "cache/thumbnails", "cache/assets/001"])
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_cache_that_is_media_of_a_library_is_refused(
    state: Path, tmp_path: Path, path: str, is_linked: bool
) -> None:
    orphans = put_orphans(state)
    root = state / path
    if is_linked:
        (tmp_path / "linked").symlink_to(root)
        root = tmp_path / "linked"
    with pytest.raises(Fail, match="nothing was removed") as failed:
        swept(state, [tmp_path / "elsewhere", root])
    assert failed.value.code == "cache_is_media"
    assert all(file.exists() for file in orphans)


@pytest.mark.parametrize("path", ["..", "../media", "library", "cache2"])
def test_a_library_around_or_beside_the_cache_does_not_matter(state: Path, path: str) -> None:
    orphans = put_orphans(state)
    assert swept(state, [state / path]).items == len(orphans)


def test_a_library_in_the_trash_is_not_swept_either(database: Databases, state: Path) -> None:
    orphans = put_orphans(state)
    with database.control.write() as conn:
        Rows(conn).add("libraries", absolute_path=bytes(state / "cache"), deleted_at=1)
    with pytest.raises(Fail, match="nothing was removed"):
        sweep(sweep_task(database.data, None), context(state))
    assert all(file.exists() for file in orphans)


@pytest.mark.parametrize(
    ("event", "error"),
    [("cancelled", Cancelled), ("interrupted", Interrupted), ("lost", LeaseLost)],
)
def test_a_sweep_that_is_to_end_removes_nothing_more(
    state: Path, event: str, error: type[Exception]
) -> None:
    orphans = put_orphans(state)
    control = Control()

    def known(_owner: Owner, _ids: Collection[int]) -> set[int]:
        getattr(control, event).set()
        return set()

    with pytest.raises(error):
        sweep(SweepTask([], known), context(state, control))
    assert all(file.exists() for file in orphans)


def test_a_sweep_leaves_no_folder_open(state: Path) -> None:
    put_orphans(state)
    before = set(os.listdir("/proc/self/fd"))
    swept(state)
    assert set(os.listdir("/proc/self/fd")) == before


@given(st.integers(1, 2**63 - 1))
def test_the_row_of_a_path_is_the_row_it_was_made_for(row_id: int) -> None:
    *_, shard, folder, _ = asset_path(row_id, AssetFile.SPRITE, "1-2").split("/")
    assert row_of(Owner.ASSETS, shard, folder) == row_id
    for form in ThumbnailFormat:
        *_, shard, name = thumbnail_path(row_id, form).split("/")
        assert row_of(Owner.THUMBNAILS, shard, name) == row_id


@given(st.sampled_from(Owner), st.text(max_size=4), st.text(max_size=30))
def test_a_name_has_a_row_only_when_it_is_the_path_of_that_row(
    owner: Owner, folder: str, name: str
) -> None:
    row_id = row_of(owner, folder, name)
    paths = {thumbnail_path(row_id or 0, form) for form in ThumbnailFormat}
    paths |= {asset_path(row_id or 0, file, "1-2").rpartition("/")[0] for file in AssetFile}
    assert row_id is None or f"cache/{owner}/{folder}/{name}" in paths
