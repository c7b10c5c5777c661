"""Has a data plane's own code try out, in a process, what it needs on this machine."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import ParseDict

from mediaplane.doctor.finding import Finding, ok, problem, warning
from mediaplane.locations import Locations
from mediaplane.planes import command_line
from mediaplane.v1.data_plane_service_pb2 import ProbeRootResponse

# Starting a decoder is tried three times, a minute each.
_SECONDS = 200.0
_CONFINEMENTS = ("landlock", "seccomp")


@dataclass(frozen=True)
class Checkup:
    """What the program found, or why it could not be asked."""

    answer: dict[str, Any]
    failure: str = ""

    @property
    def roots(self) -> list[ProbeRootResponse]:
        """The folders that it looked at."""
        return [ParseDict(one, ProbeRootResponse()) for one in self.answer.get("roots", [])]


def check_up(locations: Locations, roots: Sequence[bytes] = ()) -> Checkup:
    """Run the program once."""
    asked = {"roots": [base64.b64encode(root).decode() for root in roots]}
    try:
        done = subprocess.run(
            command_line("data_plane.checkup"),
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
            env=os.environ | locations.environment(),
        )
    except subprocess.CalledProcessError as error:
        said = str(error.stderr).strip().splitlines() or [f"exit code {error.returncode}"]
        return Checkup({}, said[-1])
    except subprocess.TimeoutExpired:
        return Checkup({}, f"no answer within {_SECONDS:.0f} s")
    return Checkup(json.loads(done.stdout))


def look(checkup: Checkup) -> Iterator[Finding]:
    """Say what holds on this machine."""
    check, answer = "decoders", checkup.answer
    if not answer:
        yield problem(
            check,
            f"A data plane cannot run here: {checkup.failure}",
            "Install mediaplane anew, and check the MEDIAPLANE_* settings.",
        )
        return
    if answer["failure"]:
        yield problem(
            check,
            f"A decoder could not decode a plain picture: {answer['failure']}",
            "Install mediaplane anew; raise MEDIAPLANE_DECODER_MEMORY_BYTES if it is set low.",
        )
    else:
        yield ok(check, "A decoder has made a thumbnail of a picture.")
    if answer["sandbox"]:
        yield _look_at_confinement(answer["sandbox"])
    if answer["resolver"] == "openat2":
        yield ok("sandbox", "Files are opened beneath their root by openat2.")
    else:
        yield warning(
            "sandbox",
            "The kernel has no openat2; paths are walked folder by folder, as safe and slower.",
            "Use Linux 5.6 or later, and a container that allows it.",
        )


def _look_at_confinement(level: str) -> Finding:
    missing = [name for name in _CONFINEMENTS if name not in level.split("+")]
    if not missing:
        return ok("sandbox", "Decoders are confined by Landlock and seccomp.")
    return warning(
        "sandbox",
        f"Decoders run without {' and '.join(missing)} here: a hostile file could reach what you"
        " can.",
        "Use a kernel that has it, and a container that allows it.",
    )
