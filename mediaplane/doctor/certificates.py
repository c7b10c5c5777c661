"""The certificates that are set: whether they can be read, and for how long they are valid."""

import re
import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from mediaplane.doctor.finding import Finding, ok, problem, warning

_DAY_SECONDS = 24 * 3600
_SOON_DAYS = 14
# Whether a file is one certificate with those above it, or a choice of authorities.
_SETTINGS = {
    "MEDIAPLANE_TLS_CERT": True,
    "MEDIAPLANE_TLS_CLIENT_CA": False,
    "MEDIAPLANE_TLS_CLIENT_CERT": True,
    "MEDIAPLANE_TLS_CA": False,
}
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_EXPLICIT_VERSION, _UTC_TIME = 0xA0, 0x17


def look(environ: Mapping[str, str], now: float | None = None) -> Iterator[Finding]:
    """Look at the certificates that the settings name; at none where none is set."""
    for setting, is_chain in _SETTINGS.items():
        if path := environ.get(setting):
            yield _look_at(setting, path, now or time.time(), is_chain=is_chain)


def _look_at(setting: str, path: str, now: float, *, is_chain: bool) -> Finding:
    check, where = "certificates", f"{path} ({setting})"
    try:
        ends = [_end(one) for one in _PEM.findall(Path(path).read_text("ascii", "replace"))]
    except OSError as error:
        return problem(check, f"{where}: {error.strerror}.", "Give a file that you may read.")
    except (ValueError, IndexError):
        ends = []
    if not ends:
        return problem(check, f"{where} holds no certificate.", "Give a file with one, in PEM.")
    # A chain breaks with its first link, while one authority is enough.
    end = min(ends) if is_chain else max(ends)
    left_seconds = end.timestamp() - now
    told = f"{end:%Y-%m-%d %H:%M} UTC"
    advice = "Put a new one in its place; planes that run take it up by themselves."
    if left_seconds <= 0:
        return problem(check, f"{where} has expired at {told}.", advice)
    if left_seconds < _SOON_DAYS * _DAY_SECONDS:
        return warning(check, f"{where} expires at {told}.", advice)
    return ok(check, f"{where} is valid until {told}.")


def _end(certificate: str) -> datetime:
    """Return when a certificate expires, which Python's ssl tells of its peers' alone."""
    ((_, whole),) = _parts(ssl.PEM_cert_to_DER_cert(certificate))
    fields = _parts(_parts(whole)[0][1])
    if fields[0][0] == _EXPLICIT_VERSION:
        del fields[0]
    _number, _algorithm, _issuer, (_, validity) = fields[:4]
    tag, shown = _parts(validity)[1]
    digits = shown.decode("ascii")
    if tag == _UTC_TIME:  # which has two digits for the year, of 1950 to 2049
        digits = ("20" if digits < "50" else "19") + digits
    return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _parts(data: bytes) -> list[tuple[int, bytes]]:
    """Return the tags and contents of the elements that stand in a row (DER)."""
    found, at = [], 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size >= 0x80:  # then so many bytes hold the size
            digits = size & 0x7F
            size, at = int.from_bytes(data[at : at + digits]), at + digits
        found.append((tag, data[at : at + size]))
        at += size
    return found
