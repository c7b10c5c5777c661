"""A certificate authority of a test's own."""

import subprocess
from pathlib import Path

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Authority:
    """Signs certificates for servers on this machine and for their clients."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()
        self.certificate = directory / "authority.pem"
        self._key = directory / "authority.key"
        _openssl(*_KEY, "-subj", "/CN=test authority", out=self.certificate, key=self._key)

    def issue(self, name: str, *alternatives: str) -> tuple[Path, Path]:
        """Return the files of a new certificate and its key; by default one for a server here."""
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        listed = ",".join(alternatives or ("DNS:localhost", "IP:127.0.0.1"))
        _openssl(
            *_KEY,
            *("-subj", f"/CN={name}"),
            *("-addext", f"subjectAltName={listed}"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-CA", str(self.certificate), "-CAkey", str(self._key)),
            out=certificate,
            key=key,
        )
        return certificate, key


def _openssl(*words: str, out: Path, key: Path) -> None:
    command = ["openssl", "req", "-x509", "-days", "2", *words, "-out", str(out)]
    subprocess.run([*command, "-keyout", str(key)], check=True, capture_output=True)
