"""A client in another language gets the same answers from the same contract."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from tests.support import worker
from tests.support.control import SCAN, ControlPlane
from tests.support.files import add_files, add_library, content, expected_groups, summarise_all
from tests.support.waiting import must_not_block

CLIENT = Path(__file__).parent / "node" / "client.js"
PROTO = Path(__file__).parents[2] / "proto"
LARGE_BYTES = 2**53 + 1  # what a JavaScript number cannot hold


@pytest.fixture(autouse=True)
def node_is_installed() -> None:
    if not shutil.which("node"):
        pytest.skip("node is missing: install it (Debian: nodejs and npm), then run `make check`")
    if not (CLIENT.parent / "node_modules/.stamp").exists():
        pytest.skip("the packages of the client are missing: install npm, then run `make check`")


@contextmanager
def client(control: ControlPlane, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = ["node", str(CLIENT), str(PROTO), control.address, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            with must_not_block():
                yield process
        finally:
            process.kill()


def told(control: ControlPlane, *arguments: str, code: int = 0) -> list[Any]:
    """Run the client to its end and return the documents it printed."""
    with client(control, *arguments) as process:
        output, _ = process.communicate()
        assert process.returncode == code, output
    return [json.loads(line) for line in output.splitlines()]


def test_it_lists_libraries_with_the_exact_bytes_of_their_roots(control: ControlPlane) -> None:
    roots = {"holiday": b"/media/caf\xe9\n", "photos": "/media/B\u00fccher".encode()}
    for slug, root in roots.items():
        control.library(slug, root)
    assert told(control, "libraries") == [
        [
            {"name": f"libraries/{slug}", "display_name": slug, "root_path_hex": root.hex()}
            for slug, root in roots.items()
        ]
    ]


def test_it_pages_through_the_duplicate_groups_that_python_sees(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        files = [content(number // 2) for number in range(22)]
        vast = [content(99, "sha256") | {"size_bytes": LARGE_BYTES} for _ in range(2)]
        add_files(conn, add_library(conn, "photos"), files + vast)
        summarise_all(conn)
        expected = expected_groups(conn)
    pages = told(control, "groups", "5")
    assert [len(page) for page in pages] == [5, 5, 2]
    groups = [group for page in pages for group in page]
    assert [group["group_key"] for group in groups] == [group.key for group in expected]
    assert [group["group_key"] for group in groups] == [
        group.group_key for group in control.client.duplicate_groups()
    ]
    assert groups == [
        {
            "group_key": group.key,
            "hash_algorithm": f"HASH_ALGORITHM_{group.hash_algorithm.upper()}",
            "content_hash_hex": group.content_hash_hex,
            "file_count": str(group.file_count),
            "total_size_bytes": str(group.total_size_bytes),
        }
        for group in expected
    ]


def test_it_watches_a_job_to_its_end(control: ControlPlane) -> None:
    job = control.create(SCAN, control.library("photos"))
    with client(control, "watch", job.name) as process:
        assert process.stdout
        # Each change is made when the one before was seen, so that none can be missed.
        lines = (json.loads(line) for line in process.stdout)
        assert next(lines) == {"job": job.name, "state": "STATE_PENDING"}
        claimed = worker.claim(control.database.data)
        assert next(lines) == {"job": job.name, "state": "STATE_RUNNING"}
        assert worker.finish(control.database.data, claimed)
        assert list(lines) == [{"job": job.name, "state": "STATE_COMPLETED"}]
        assert process.wait() == 0


def test_it_learns_why_a_call_was_refused(control: ControlPlane) -> None:
    (refusal,) = told(control, "watch", "jobs/77", code=1)
    number, _ = StatusCode.NOT_FOUND.value
    assert refusal["code"] == number
    assert "There is no job 77" in refusal["text"]
