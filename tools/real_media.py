"""Fetches pictures and videos that nobody here made, out of Debian packages given by name.

    python tools/real_media.py plasma-workspace-wallpapers rawtran-doc

Prints the folder of each package. They are kept below MEDIA_DIR, or below the folder for temporary
files, and fetched once.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


class Unavailable(Exception):
    """A package cannot be fetched here."""


def fetch(package: str) -> Path:
    """Return the folder with what a package holds, fetched if need be."""
    kept = Path(os.environ.get("MEDIA_DIR") or Path(tempfile.gettempdir(), "mediaplane-media"))
    folder = kept / package
    if folder.is_dir():
        return folder
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as place:
        try:
            _run(["apt-get", "download", package], place)
            (archive,) = Path(place).glob("*.deb")
            _run(["dpkg-deb", "-x", archive.name, "content"], place)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise Unavailable(
                f"The Debian package {package} cannot be fetched: {_reason(error)}. "
                "Run `apt-get update`, or do without it."
            ) from None
        # Whole or not at all: the next one to ask takes what is there.
        Path(place, "content").rename(folder)
    return folder


def files(package: str, *extensions: str) -> list[Path]:
    """Return the files of a package that have one of these extensions, links aside."""
    return sorted(
        path
        for path in fetch(package).rglob("*")
        if path.suffix.lower().removeprefix(".") in extensions
        and path.is_file()
        and not path.is_symlink()
    )


def _run(command: list[str], folder: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return (
        str(said).strip().splitlines()[-1].rstrip(".") if str(said).strip() else "no reason given"
    )


def main() -> int:
    """Fetch the packages of the command line."""
    try:
        for package in sys.argv[1:]:
            print(fetch(package))
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
