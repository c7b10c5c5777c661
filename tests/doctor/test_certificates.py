"""The doctor tells in time when a certificate is about to expire."""

import subprocess
import time
from pathlib import Path

import pytest

from mediaplane.doctor import certificates
from mediaplane.doctor.finding import Level
from tests.doctor.reading import levels, only


def issue(path: Path, days: int) -> Path:
    """Make a certificate that expires in so many days."""
    made = path.with_suffix(".pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", str(path.with_suffix(".key")), "-subj", "/CN=media.example.org",
         "-days", str(days), "-out", str(made)],
        check=True, capture_output=True,
    )  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("passed_days", "level"), [(0, "ok"), (15, "ok"), (17, "warning"), (31, "problem")]
)
def test_a_certificate_is_told_of_two_weeks_before_its_end(
    tmp_path: Path, passed_days: int, level: str
) -> None:
    environ = {"MEDIAPLANE_TLS_CERT": str(issue(tmp_path / "server", 30))}
    now = time.time() + passed_days * 24 * 3600
    assert levels(certificates.look(environ, now), "certificates") == [level]


def test_the_end_is_the_one_that_openssl_shows(tmp_path: Path) -> None:
    for days in (3, 40_000):  # before and after 2049 it is written in two ways
        made = issue(tmp_path / "server", days)
        shown = subprocess.run(
            ["openssl", "x509", "-in", str(made), "-noout", "-enddate", "-dateopt", "iso_8601"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        (found,) = certificates.look({"MEDIAPLANE_TLS_CERT": str(made)})
        assert shown.removeprefix("notAfter=")[:16] in found.message


def test_a_chain_ends_with_its_first_link_and_authorities_with_their_last(tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    parts = [issue(tmp_path / "long", 400), issue(tmp_path / "short", 3)]
    both.write_text("".join(part.read_text() for part in parts))
    chain = certificates.look({"MEDIAPLANE_TLS_CERT": str(both)})
    assert "expires at" in only(chain, "certificates", Level.WARNING).message
    authorities = certificates.look({"MEDIAPLANE_TLS_CLIENT_CA": str(both)})
    assert levels(authorities, "certificates") == ["ok"]


@pytest.mark.parametrize(
    "content",
    [None, b"", b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", b"\xff" * 100],
)
def test_a_file_without_a_certificate_is_a_problem(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "server.pem"
    if content is not None:
        path.write_bytes(content)
    found = only(
        certificates.look({"MEDIAPLANE_TLS_CLIENT_CERT": str(path)}), "certificates", Level.PROBLEM
    )
    assert "MEDIAPLANE_TLS_CLIENT_CERT" in found.message


def test_where_no_certificate_is_set_nothing_is_said() -> None:
    assert list(certificates.look({})) == []
