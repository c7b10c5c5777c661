"""Libraries over the wire: what they may be called, where they may lie, what may change."""

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from grpc import StatusCode

from mediaplane.v1 import asset_service_pb2 as assets_pb
from mediaplane.v1 import job_service_pb2 as jobs_pb
from mediaplane.v1 import library_service_pb2 as pb
from tests.support.control import ControlPlane, Refusal, refusal


def create(control: ControlPlane, name: str, root: bytes, slug: str = "") -> Refusal:
    library = pb.Library(display_name=name, root_path=root)
    request = pb.CreateLibraryRequest(library=library, library_id=slug)
    return refusal(control.libraries.CreateLibrary, request)


def update(control: ControlPlane, mask: list[str], **fields: Any) -> pb.Library:
    library = pb.Library(name="libraries/photos", **fields)
    request = pb.UpdateLibraryRequest(library=library, update_mask=FieldMask(paths=mask))
    return control.libraries.UpdateLibrary(request)


def refused_update(control: ControlPlane, mask: list[str], **fields: Any) -> Refusal:
    return refusal(lambda _: update(control, mask, **fields), None)


def test_a_new_library_is_found_under_its_name(control: ControlPlane) -> None:
    library = control.client.add_library("Holiday photos", b"/media/holiday", "holiday")
    assert (library.name, library.display_name) == ("libraries/holiday", "Holiday photos")
    assert (library.root_path, library.root_path_display) == (b"/media/holiday", "/media/holiday")
    assert library.is_active
    assert library.hash_policy == pb.Library.HASH_POLICY_CANDIDATES
    assert library.hash_algorithm == pb.HASH_ALGORITHM_BLAKE3
    assert library.sampling_limit == 100
    assert library.scan_status == pb.Library.SCAN_STATUS_IDLE
    assert not library.HasField("last_scan")
    assert control.client.library("holiday") == library
    assert list(control.client.libraries()) == [library]


def test_a_library_is_created_with_the_settings_asked_for(control: ControlPlane) -> None:
    asked = pb.Library(
        display_name="Films",
        root_path=b"/films",
        is_active=False,
        hash_policy=pb.Library.HASH_POLICY_ALL,
        hash_algorithm=pb.HASH_ALGORITHM_SHA256,
        sampling_limit=7,
    )
    made = control.libraries.CreateLibrary(pb.CreateLibraryRequest(library=asked))
    assert not made.is_active
    assert made.hash_policy == pb.Library.HASH_POLICY_ALL
    assert made.hash_algorithm == pb.HASH_ALGORITHM_SHA256
    assert made.sampling_limit == 7


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Holiday Photos 2024", "holiday-photos-2024"),
        ("  Été à Köln! ", "ete-a-koln"),
        ("写真", "library"),
        ("x" * 200, "x" * 63),
    ],
)
def test_a_library_without_an_id_is_called_after_its_display_name(
    control: ControlPlane, name: str, slug: str
) -> None:
    assert control.client.add_library(name, b"/media/x").name == f"libraries/{slug}"


@pytest.mark.parametrize(
    "slug", ["-", "a-", "-a", "A", "a b", "a/b", "ä", "x" * 64, "a\n", "..", "a_b"]
)
def test_an_id_of_another_form_is_refused(control: ControlPlane, slug: str) -> None:
    error = create(control, "Photos", b"/media/x", slug)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "a-z" in error.text
    assert list(control.client.libraries()) == []


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "a\nb", "a\0b"])
def test_a_display_name_that_cannot_be_shown_is_refused(control: ControlPlane, name: str) -> None:
    assert create(control, name, b"/media/x", "photos").code is StatusCode.INVALID_ARGUMENT


def test_an_id_that_is_taken_is_refused_with_the_library_that_has_it(
    control: ControlPlane,
) -> None:
    control.library("photos")
    error = create(control, "Photos", b"/media/elsewhere")
    assert (error.code, error.metadata) == (
        StatusCode.ALREADY_EXISTS,
        {"library": "libraries/photos"},
    )
    assert "another name" in error.text


@pytest.mark.parametrize("root", [b"/media/a", b"/media/a/", b"//media//a/./b/..", b"///media/a"])
def test_one_root_has_one_library_however_it_is_written(control: ControlPlane, root: bytes) -> None:
    control.client.add_library("First", b"/media/a", "first")
    error = create(control, "Second", root)
    assert (error.code, error.metadata) == (
        StatusCode.ALREADY_EXISTS,
        {"library": "libraries/first"},
    )
    assert "first" in error.text


@pytest.mark.parametrize("root", [b"/", b"//", b"///", b"/a/..", b"/."])
def test_the_whole_file_system_is_no_library(control: ControlPlane, root: bytes) -> None:
    error = create(control, "Everything", root)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "whole file system" in error.text


@pytest.mark.parametrize("root", [b"", b"media", b"./media", b"~/media", b"/media\0/x"])
def test_a_root_that_is_not_an_absolute_path_is_refused(control: ControlPlane, root: bytes) -> None:
    error = create(control, "Photos", root)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "absolute path" in error.text


def test_a_root_need_not_be_utf_8(control: ControlPlane) -> None:
    library = control.client.add_library("Disk", b"/media/caf\xe9\n")
    assert library.root_path == b"/media/caf\xe9\n"
    assert library.root_path_display == "/media/caf\\xe9\\x0a"
    other = control.client.add_library("Other disk", "/media/café\n".encode())
    assert [found.root_path for found in control.client.libraries()] == [
        library.root_path,
        other.root_path,
    ]


def test_an_update_changes_what_its_mask_names_and_nothing_else(control: ControlPlane) -> None:
    control.library("photos")
    before = control.client.library("photos")
    changed = update(
        control,
        ["display_name", "is_active", "hash_policy", "hash_algorithm", "sampling_limit"],
        display_name="All photos",
        is_active=False,
        hash_policy=pb.Library.HASH_POLICY_ALL,
        hash_algorithm=pb.HASH_ALGORITHM_SHA256,
        sampling_limit=9,
    )
    assert (changed.display_name, changed.is_active, changed.sampling_limit) == (
        "All photos",
        False,
        9,
    )
    back = update(control, ["is_active"], is_active=True, display_name="Not this", sampling_limit=1)
    assert (back.is_active, back.display_name, back.sampling_limit) == (True, "All photos", 9)
    assert (back.hash_policy, back.root_path) == (pb.Library.HASH_POLICY_ALL, before.root_path)
    assert control.client.library("photos") == back


@pytest.mark.parametrize(
    ("mask", "fields", "word"),
    [
        ([], {"display_name": "New"}, "empty"),
        (["root_path"], {"root_path": b"/elsewhere"}, "root_path"),
        (["name"], {}, "name"),
        (["scan_status"], {"scan_status": 2}, "scan_status"),
        (["display_name", "nonsense"], {"display_name": "New"}, "nonsense"),
        (["*"], {"display_name": "New"}, "*"),
        (["is_active"], {}, "is_active"),
        (["display_name"], {}, "display_name"),
        (["display_name"], {"display_name": "\t"}, "printable"),
        (["sampling_limit"], {}, "sampling_limit"),
        (["sampling_limit"], {"sampling_limit": -1}, "sampling_limit"),
        (["sampling_limit"], {"sampling_limit": 1001}, "sampling_limit"),
        (["hash_policy"], {"hash_policy": 99}, "99"),
        (["hash_algorithm"], {"hash_algorithm": 99}, "99"),
    ],
)
def test_an_update_that_makes_no_sense_is_refused_as_a_whole(
    control: ControlPlane, mask: list[str], fields: dict[str, Any], word: str
) -> None:
    control.library("photos")
    before = control.client.library("photos")
    error = refused_update(control, mask, **fields)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert word in error.text
    assert control.client.library("photos") == before


def scan_settings(library: pb.Library) -> tuple[list[str], list[str], bool, bool, int]:
    return (
        list(library.include_globs),
        list(library.exclude_globs),
        library.skips_hidden,
        library.crosses_filesystems,
        library.min_size_bytes,
    )


SCAN_SETTINGS: dict[str, Any] = {
    "include_globs": ["*.jpg", "caf\u00e9/**"],
    "exclude_globs": ["cache"],
    "skips_hidden": True,
    "crosses_filesystems": True,
    "min_size_bytes": 2**40,
}
NOTHING_SET: tuple[Any, ...] = ([], [], False, False, 0)


def test_a_scan_looks_at_everything_on_its_disk_unless_told_otherwise(
    control: ControlPlane,
) -> None:
    assert scan_settings(control.client.add_library("Photos", b"/photos")) == NOTHING_SET


def test_what_a_scan_looks_at_is_set_when_a_library_is_added(control: ControlPlane) -> None:
    made = control.client.add_library("Photos", b"/photos", **SCAN_SETTINGS)
    assert scan_settings(made) == tuple(SCAN_SETTINGS.values())
    assert control.client.library("photos") == made


@pytest.mark.parametrize("field", SCAN_SETTINGS)
def test_each_scan_setting_can_be_changed_and_changed_back(
    control: ControlPlane, field: str
) -> None:
    control.library("photos")
    changed = control.client.change_library("photos", **{field: SCAN_SETTINGS[field]})
    expected = [
        SCAN_SETTINGS[name] if name == field else unset
        for name, unset in zip(SCAN_SETTINGS, NOTHING_SET, strict=True)
    ]
    assert scan_settings(changed) == tuple(expected)
    assert scan_settings(update(control, [field])) == NOTHING_SET


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"include_globs": [""]}, "include_globs"),
        ({"exclude_globs": ["a\0b"]}, "NUL"),
        ({"exclude_globs": ["x" * 501]}, "500"),
        ({"include_globs": ["x"] * 201}, "200"),
        ({"min_size_bytes": -1}, "min_size_bytes is -1"),
    ],
)
def test_scan_settings_that_make_no_sense_are_refused(
    control: ControlPlane, settings: dict[str, Any], word: str
) -> None:
    control.library("photos")
    for call in (
        lambda _: control.client.add_library("Films", b"/films", **settings),
        lambda _: control.client.change_library("photos", **settings),
    ):
        error = refusal(call, None)
        assert error.code is StatusCode.INVALID_ARGUMENT
        assert word in error.text
    assert [scan_settings(library) for library in control.client.libraries()] == [NOTHING_SET]


def test_the_longest_patterns_and_the_most_of_them_are_kept(control: ControlPlane) -> None:
    globs = ["\u00e9" * 500] * 200
    made = control.client.add_library("Photos", b"/photos", include_globs=globs)
    assert list(made.include_globs) == globs


def test_the_name_of_a_library_in_the_trash_is_kept_for_it(control: ControlPlane) -> None:
    control.library("photos")
    control.client.remove_library("photos")
    error = create(control, "Photos", b"/media/new")
    assert error.code is StatusCode.FAILED_PRECONDITION
    assert "mediaplane library restore photos" in error.text
    assert "mediaplane library add --slug" in error.text
    assert error.metadata == {"library": "libraries/photos"}


def test_the_root_of_a_library_in_the_trash_is_free(control: ControlPlane) -> None:
    control.client.add_library("Old", b"/media/a")
    control.client.remove_library("old")
    assert control.client.add_library("New", b"/media/a").name == "libraries/new"


def test_a_library_in_the_trash_is_hidden_from_every_call(control: ControlPlane) -> None:
    name = control.library("photos")
    control.library("films")
    control.client.remove_library("photos")
    assert [found.name for found in control.client.libraries()] == ["libraries/films"]
    statistics = control.client.statistics()
    assert [figures.library for figures in statistics.libraries] == ["libraries/films"]
    scan = jobs_pb.Job(kind=jobs_pb.JOB_KIND_SCAN, library=name)
    for call, request in (
        (control.libraries.GetLibrary, pb.GetLibraryRequest(name=name)),
        (control.libraries.ScanLibrary, pb.ScanLibraryRequest(name=name)),
        (control.libraries.HashLibrary, pb.HashLibraryRequest(name=name)),
        (control.libraries.ListFiles, pb.ListFilesRequest(parent=name)),
        (control.libraries.ListScanErrors, pb.ListScanErrorsRequest(parent=name)),
        (control.client.asset_service.ListAssets, assets_pb.ListAssetsRequest(parent=name)),
        (control.jobs.CreateJob, jobs_pb.CreateJobRequest(job=scan)),
    ):
        assert refusal(call, request).code is StatusCode.NOT_FOUND
    assert refused_update(control, ["is_active"], is_active=True).code is StatusCode.NOT_FOUND
