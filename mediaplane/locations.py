"""Says where everything is: the state directory, the database, and the address of each plane."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import quote

from mediaplane.addresses import is_local, is_unix
from mediaplane.errors import UnusableSettings
from mediaplane.paths import display

# The kernel takes 107 bytes; gRPC and the longest socket name need a few of them.
_MAX_SOCKET_PATH_BYTES = 100
LIFE = ".life"


@dataclass(frozen=True)
class Locations:
    """Where one installation lives, as both planes and the command line see it."""

    # Holds the database, the sockets, the logs and every derivative.
    state: Path
    database_url: str
    # gRPC targets: 'unix:/path', percent-encoded, or 'host:port'.
    control_address: str
    data_address: str
    # At addresses of the network; at a unix socket nothing ever is.
    is_encrypted: bool = False
    # None: the state directory. Processes that share that need each a folder of their own.
    sockets: Path | None = None

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str], state: str | os.PathLike[str] | None = None
    ) -> Self:
        """Read MEDIAPLANE_*; a given `state` wins over the one of the environment."""
        directory = _state_directory(environ, state)
        sockets = environ.get("MEDIAPLANE_SOCKETS")
        near = Path(os.path.abspath(sockets)) if sockets else directory
        return cls(
            state=directory,
            database_url=environ.get("MEDIAPLANE_DATABASE_URL") or _database_url(directory),
            control_address=environ.get("MEDIAPLANE_CONTROL_ADDRESS")
            or _socket_address(near, "control.sock"),
            data_address=environ.get("MEDIAPLANE_DATA_ADDRESS")
            or _socket_address(near, "data.sock"),
            is_encrypted=bool(environ.get("MEDIAPLANE_TLS_CERT")),
            sockets=near if sockets else None,
        )

    @property
    def local_control_address(self) -> str:
        """Where commands on this machine reach the control plane, with neither TLS nor token."""
        return self._open(self.control_address) or self._socket("control.sock")

    @property
    def local_data_address(self) -> str:
        """Where commands on this machine reach the data plane, with neither TLS nor token."""
        return self._open(self.data_address) or self._socket("data.sock")

    def _socket(self, name: str) -> str:
        return _socket_address(self.sockets or self.state, name)

    def _open(self, address: str) -> str | None:
        is_open = is_unix(address) or (is_local(address) and not self.is_encrypted)
        return address if is_open else None

    @property
    def runtime(self) -> Path:
        """What only matters while planes run: locks and pipes."""
        return self.state / "run"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def scratch(self) -> Path:
        """Files of work under way."""
        return self.state / "scratch"

    def prepare(self) -> None:
        """Create the directories; they are for nobody else's eyes, like the libraries' contents."""
        try:
            for directory in (self.state, self.runtime, self.logs):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UnusableSettings(
                f"The state directory {self.state} cannot be used ({error.strerror}); choose"
                " another with --state or MEDIAPLANE_STATE."
            ) from None

    def environment(self) -> dict[str, str]:
        """The variables that make another process see the same locations."""
        chosen = {"MEDIAPLANE_SOCKETS": str(self.sockets)} if self.sockets else {}
        return chosen | {
            "MEDIAPLANE_STATE": str(self.state),
            "MEDIAPLANE_DATABASE_URL": self.database_url,
            "MEDIAPLANE_CONTROL_ADDRESS": self.control_address,
            "MEDIAPLANE_DATA_ADDRESS": self.data_address,
        }


def life_of(folder: Path) -> Path:
    """Return the file that the worker of a scratch folder keeps locked as long as it lives.

    Not the folder itself: on NFS, the lock of a folder is not seen by other machines.
    """
    return folder.with_name(folder.name + LIFE)


def _state_directory(environ: Mapping[str, str], state: str | os.PathLike[str] | None) -> Path:
    chosen = state or environ.get("MEDIAPLANE_STATE")
    if chosen:
        directory = Path(os.path.abspath(chosen))
    else:
        home = environ.get("XDG_STATE_HOME", "")
        # The XDG specification: a relative path is invalid and to be ignored.
        base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state"
        directory = base / "mediaplane"
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        raise UnusableSettings(
            f"The state directory '{display(os.fsencode(directory))}' has a name that is not UTF-8;"
            " choose another with --state or MEDIAPLANE_STATE."
        ) from None
    return directory


def _database_url(state: Path) -> str:
    # What SQLAlchemy would write, without the time it takes to import.
    return "sqlite:///" + quote(str(state / "mediaplane.db"), safe=" +/")


def _socket_address(state: Path, name: str) -> str:
    path = state / name
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH_BYTES:
        path = _short_directory(state) / name
    return "unix:" + quote(str(path))


def _short_directory(state: Path) -> Path:
    """A private directory for the sockets of a state directory whose path is too long for them."""
    import hashlib  # noqa: PLC0415 - slow, and few states have such a path
    import tempfile  # noqa: PLC0415

    digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:16]
    directory = Path(tempfile.gettempdir()) / f"mediaplane-{os.getuid()}-{digest}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        raise UnusableSettings(
            f"The directory {directory} for sockets cannot be made ({error.strerror}); choose a"
            " state directory with a shorter path."
        ) from None
    # Anybody may write to the temporary directory, so it may be there as somebody else's trap.
    is_mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_mine or stat.S_IMODE(found.st_mode) & 0o077:
        raise UnusableSettings(
            f"{directory} is not a private directory of yours, so sockets in it are not safe;"
            " remove it, or choose a state directory with a shorter path."
        )
    return directory
