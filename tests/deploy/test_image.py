"""The image itself: both planes from it, as nobody in particular, with a root they cannot write.

Runs where MEDIAPLANE_TEST_IMAGE names an image; MEDIAPLANE_TEST_PODMAN is the command to run it.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from PIL import Image

from tests.support.waiting import eventually

IMAGE = os.environ["MEDIAPLANE_TEST_IMAGE"]
PODMAN = shlex.split(os.environ.get("MEDIAPLANE_TEST_PODMAN", "podman"))
# What the manifests demand of a pod, in podman's words.
RESTRICTED = ["--read-only", "--tmpfs=/tmp", "--cap-drop=all", "--security-opt=no-new-privileges"]


def podman(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [*PODMAN, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.strip()


class Site:
    """Containers that share a volume for their state, and none of them a network."""

    def __init__(self, media: Path) -> None:
        self.volume = podman("volume", "create", f"mediaplane-test-{uuid4().hex[:12]}")
        self._options = [
            *RESTRICTED, "--network=none", f"--volume={self.volume}:/var/lib/mediaplane",
            f"--volume={media}:/media:ro",
        ]  # fmt: skip
        self.started: list[str] = []

    def run(self, *command: str, options: tuple[str, ...] = (), code: int = 0) -> str:
        return podman("run", "--rm", *self._options, *options, IMAGE, *command, code=code)

    def json(self, *command: str) -> Any:
        return json.loads(self.run(*command, "--json"))

    def start(self, *command: str) -> str:
        self.started.append(podman("run", "--detach", *self._options, IMAGE, *command))
        return self.started[-1]

    def close(self) -> None:
        for container in self.started:
            podman("rm", "--force", container)
        podman("volume", "rm", self.volume)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    media = tmp_path / "media"
    media.mkdir(mode=0o755)
    Image.new("RGB", (640, 480), "red").save(media / "red.jpg")
    made = Site(media)
    try:
        yield made
    finally:
        made.close()


def test_the_image_has_no_root_and_nothing_that_installs(site: Site) -> None:
    script = (
        "import os, importlib.util as u; print(os.getuid(), os.getgid(),"
        " [name for name in ('pip', 'setuptools', 'wheel') if u.find_spec(name)],"
        " os.access('/opt/mediaplane', os.W_OK), os.access('/', os.W_OK))"
    )
    # Not the base's own Python: that one may have come with an installer.
    python = "--entrypoint=/opt/mediaplane/bin/python"
    assert site.run("-c", script, options=(python,)) == "65532 65532 [] False False"


def test_both_planes_work_from_the_image_and_stop_when_told(site: Site) -> None:
    site.run("db", "upgrade")
    planes = [site.start("control-plane"), site.start("data-plane")]
    site.run("library", "add", "Media", "/media")
    site.run("scan", "media")
    # A proxy was made, so decoders confine themselves under the runtime's own seccomp filter.
    eventually(lambda: '"proxied"' in json.dumps(site.json("asset", "list", "media")))
    levels = {row["level"] for row in site.json("doctor")["findings"] if row["check"] == "sandbox"}
    assert levels == {"ok"}, levels
    for plane in planes:
        podman("stop", "--time=60", plane)
        assert podman("wait", plane) == "0", podman("logs", plane)
