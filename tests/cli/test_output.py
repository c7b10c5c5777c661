"""Sizes, times, tables and JSON documents, as people and programs see them."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mediaplane.cli import output
from mediaplane.cli.documents import (
    document,
    enum_name,
    file_document,
    job_document,
    library_document,
    time_text,
)
from mediaplane.cli.progress import figures, outcome
from mediaplane.v1.duplicate_service_pb2 import DuplicateGroup
from mediaplane.v1.job_service_pb2 import Event, Job, JobKind
from mediaplane.v1.library_service_pb2 import File, HashAlgorithm, Library


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1_288_490_189, "1.2 GiB"),
        (1024**4, "1.0 TiB"),
        (2**63 - 1, "8.0 EiB"),
    ],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert output.human_bytes(size) == text


@given(st.integers(0, 2**63 - 1))
def test_no_size_has_four_digits_before_the_point(size: int) -> None:
    number, unit = output.human_bytes(size).split()
    assert unit == "B" or float(number) < 1024


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0.0 s"), (59.96, "1 min 00 s"), (245, "4 min 05 s"),
                          (3599.9, "1 h 00 min"), (7620, "2 h 07 min")]
)  # fmt: skip
def test_times_are_readable(seconds: float, text: str) -> None:
    assert output.human_seconds(seconds) == text


@given(st.text())
def test_text_of_others_cannot_steer_the_terminal(text: str) -> None:
    assert output.printable(text).isprintable()


def test_a_path_has_a_printable_and_an_exact_form() -> None:
    raw = b"caf\xe9\n.jpg"
    file = File(name="libraries/holidays/files/7", rel_path=raw, rel_path_display="ignored")
    found = file_document(file)
    assert found["library"] == "holidays"
    assert found["path"] == "caf\\xe9\\x0a.jpg"
    assert base64.b64decode(found["path_base64"]) == raw
    assert not any(name.startswith("rel_path") for name in found)


def test_a_group_has_its_key_and_exact_numbers() -> None:
    group = DuplicateGroup(
        name="duplicateGroups/blake3:00",
        group_key="blake3:00",
        hash_algorithm=HashAlgorithm.HASH_ALGORITHM_BLAKE3,
        content_hash=b"\x00\xff",
        file_count=3,
        total_size_bytes=2**53 + 1,
        reclaimable_bytes=2,
    )
    found = json.loads(json.dumps(document(group)))
    assert found["group_key"] == "blake3:00"
    assert found["file_count"] == 3
    assert found["total_size_bytes"] == 2**53 + 1
    assert found["reclaimable_bytes"] == 2
    assert found["hash_algorithm"] == "blake3"
    assert found["content_hash"] == "00ff"


def test_a_job_has_a_number_short_enums_and_rfc3339_times() -> None:
    job = Job(name="jobs/12", kind=JobKind.JOB_KIND_SCAN, state=Job.STATE_RUNNING)
    job.create_time.seconds = 1_700_000_000
    job.create_time.nanos = 250_000_000
    found = job_document(job)
    assert found["id"] == 12
    assert (found["kind"], found["state"]) == ("scan", "running")
    assert found["create_time"] == "2023-11-14T22:13:20.25Z"
    assert found["end_time"] is None


def test_a_library_has_a_slug_and_what_is_unset_is_null() -> None:
    found = library_document(Library(name="libraries/a", root_path=b"/a", is_active=True))
    assert found["slug"] == "a"
    assert found["root_path"] == "/a"
    assert found["is_active"] is True
    assert found["last_scan"] is None
    assert found["scan_status"] is None


def test_details_of_an_event_keep_their_shape() -> None:
    event = Event(name="jobs/1/events/2", id=2, type="JOB_ADDED")
    payload: dict[str, Any] = {
        "count": 3,
        "share": 0.5,
        "list": [1, {"deep": None}],
        "flag": True,
        "text": "x",
    }
    event.payload.update(payload)
    assert document(event)["payload"] == payload


def test_an_enum_value_of_a_newer_server_is_shown_as_its_number() -> None:
    job = Job.FromString(b"\x18\x63")  # state = 99
    assert enum_name(job, "state") == "99"


def test_times_before_1970_are_written_too() -> None:
    assert time_text(-1, 500_000_000) == "1969-12-31T23:59:59.5Z"


def _list(rows: list[str], *, as_json: bool) -> None:
    output.listing(
        rows,
        noun="rows",
        columns=["NAME", ">SIZE"],
        cells=lambda row: [row, str(len(row))],
        document=lambda row: {"name": row},
        as_json=as_json,
        empty="Nothing.",
    )


@pytest.mark.parametrize("count", [0, 1, 2, 1500])
def test_a_json_listing_is_one_document(capfd: pytest.CaptureFixture[str], count: int) -> None:
    rows = [f"é{number}\n" for number in range(count)]
    _list(rows, as_json=True)
    assert json.loads(capfd.readouterr().out) == {"rows": [{"name": row} for row in rows]}


def test_a_plain_table_is_aligned_and_has_one_line_for_each_row(
    capfd: pytest.CaptureFixture[str],
) -> None:
    _list(["[bold]a", "b\tc\n" * 3], as_json=False)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "SIZE"]
    assert len(lines) == 3
    assert lines[1].startswith("[bold]a ")
    assert len({len(line) for line in lines}) == 1
    assert "\t" not in lines[2]


def test_an_empty_table_prints_nothing_into_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    _list([], as_json=False)
    assert not capfd.readouterr().out


def test_figures_of_a_scan_have_a_count_and_a_rate() -> None:
    job = Job(kind=JobKind.JOB_KIND_SCAN, processed_items=12345)
    assert figures(job, 12345, 1000.4) == "12,345 files  1,000/s"


def test_figures_of_a_scan_of_known_files_tell_about_how_long_it_takes() -> None:
    job = Job(kind=JobKind.JOB_KIND_SCAN, processed_items=5000)
    text = figures(job, 5000, 1000.0, expected_files=12_000)
    assert text == "5,000 of about 12,000 files  1,000/s  7.0 s left"


def test_figures_of_a_scan_that_finds_more_than_was_known_expect_nothing() -> None:
    job = Job(kind=JobKind.JOB_KIND_SCAN, processed_items=13_000)
    assert figures(job, 13_000, 1000.0, expected_files=12_000) == "13,000 files  1,000/s"


def test_figures_of_a_hash_have_bytes_files_rate_and_time_left() -> None:
    job = Job(processed_items=5, total_items=10, total_bytes=1024**3, progress=0.5)
    text = figures(job, 512 * 1024**2, 64 * 1024**2)
    assert text == "512.0 MiB of 1.0 GiB  5 of 10 files  64.0 MiB/s  8.0 s left"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"state": Job.STATE_COMPLETED, "error_message": "of a former attempt"}, "completed"),
        ({"state": Job.STATE_FAILED, "error_message": "it is empty"}, "failed: it is empty"),
        ({"state": Job.STATE_FAILED, "error_code": "ROOT_EMPTY"}, "failed: ROOT_EMPTY"),
        ({"state": Job.STATE_SKIPPED, "skip_reason": "nothing to do"}, "skipped: nothing to do"),
    ],
)
def test_the_outcome_of_a_job_says_why(fields: dict[str, Any], text: str) -> None:
    assert outcome(Job(**fields)) == text
