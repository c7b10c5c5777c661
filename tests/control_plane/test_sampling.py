"""Frames of videos are chosen as their library says, and a file is found by its path."""

import json

import pytest
from grpc import StatusCode
from sqlalchemy import text

from mediaplane.v1 import library_service_pb2 as pb
from tests.support.control import ControlPlane, refusal
from tests.support.files import add_files

MEASURE = pb.SamplingPolicy


def test_frames_are_compared_by_their_mean_squared_error_unless_said_otherwise(
    control: ControlPlane,
) -> None:
    library = control.client.add_library("Films", b"/films", "films")
    assert library.sampling_policy.measure == MEASURE.MEASURE_MSE


def test_the_measure_is_chosen_when_a_library_is_added_or_changed(control: ControlPlane) -> None:
    similar = pb.SamplingPolicy(measure=MEASURE.MEASURE_SSIM)
    library = control.client.add_library("Films", b"/films", "films", sampling_policy=similar)
    assert library.sampling_policy == similar
    with control.database.control.read() as conn:
        stored = conn.execute(text("SELECT CAST(sampling_policy AS TEXT) FROM libraries")).scalar()
    assert json.loads(str(stored)) == {"measure": "ssim"}
    squared = pb.SamplingPolicy(measure=MEASURE.MEASURE_MSE)
    control.client.change_library("films", sampling_policy=squared)
    assert control.client.library("films").sampling_policy == squared


@pytest.mark.parametrize("measure", [0, 9])
def test_a_measure_that_is_none_is_refused(control: ControlPlane, measure: int) -> None:
    control.library("films")
    request = pb.UpdateLibraryRequest(library={"name": "libraries/films"})
    request.library.sampling_policy.measure = measure  # type: ignore[assignment]
    request.update_mask.paths.append("sampling_policy")
    found = refusal(control.libraries.UpdateLibrary, request)
    assert found.code is StatusCode.INVALID_ARGUMENT


def test_a_file_is_found_by_exactly_its_path(control: ControlPlane) -> None:
    parent = control.library("films")
    with control.database.control.write() as conn:
        rows = [{"rel_path": path} for path in (b"a", b"a/b", b"a/b.mp4", b"\xff")]
        add_files(conn, "films", [*rows, {"rel_path": b"gone", "is_missing": True}])
    for path, found in ((b"a/b", [b"a/b"]), (b"\xff", [b"\xff"]), (b"a/", []), (b"gone", [])):
        request = pb.ListFilesRequest(parent=parent, rel_path=path)
        assert [file.rel_path for file in control.libraries.ListFiles(request).files] == found
