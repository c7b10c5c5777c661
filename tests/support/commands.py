"""Runs the command line as people do: as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mediaplane.client import Client
from mediaplane.locations import Locations
from mediaplane.planes import control_plane, data_plane, running
from mediaplane.v1.library_service_pb2 import File
from tests.support.tree import Groups, inode, unprivileged

PROGRAM = [sys.executable, "-c", "from mediaplane.cli import main; main()"]


class Commands:
    """The `mediaplane` command with a state directory and a database of its own."""

    def __init__(self, state: Path, database_url: str | None = None) -> None:
        self.state = state
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MEDIAPLANE_")}
        self.environment = kept | {"MEDIAPLANE_STATE": str(state), "NO_COLOR": "1"}
        if database_url:
            self.environment["MEDIAPLANE_DATABASE_URL"] = database_url

    def argv(self, *arguments: str | Path) -> list[str]:
        """Return the whole command, run so that file permissions hold."""
        return [*unprivileged(), *PROGRAM, *map(str, arguments)]

    def run(self, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end and expect an exit code."""
        done = subprocess.run(
            self.argv(*arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, (
            f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        assert "Traceback" not in done.stderr + done.stdout, done.stderr + done.stdout
        return done

    def json(self, *arguments: str | Path) -> Any:
        """Run a command with --json; its standard output is one document and nothing else."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        return subprocess.Popen(
            self.argv(*arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def planes(self) -> Iterator[None]:
        """Keep both planes running, so that commands in between need not start them."""
        locations = Locations.from_environment(self.environment)
        with running([control_plane(locations), data_plane(locations)]):
            yield

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Connect to the control plane, started for the duration."""
        locations = Locations.from_environment(self.environment)
        with running([control_plane(locations)]), Client(locations.control_address) as client:
            yield client

    def groups(self, roots: dict[str, Path]) -> Groups:
        """Return the groups of inodes that the product lists; `roots` maps slugs to folders."""
        found: Groups = set()
        with self.client() as client:
            for group in client.duplicate_groups():
                files = list(client.duplicate_files(group.group_key))
                assert len(files) == group.file_count
                found.add(frozenset(_inode(roots, file) for file in files))
        return found


def _inode(roots: dict[str, Path], file: File) -> tuple[int, int]:
    slug = file.name.split("/")[1]
    return inode(os.path.join(os.fsencode(roots[slug]), file.rel_path))
