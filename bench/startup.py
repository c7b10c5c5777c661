"""Promise: the control plane serves within 2 s of its start on an existing database.

Compares with what no Python service over gRPC and SQLAlchemy can do without: importing them.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mediaplane.locations import Locations
from mediaplane.planes import is_serving
from mediaplane.protocol import migration

ROUNDS = 5
LIMIT_SECONDS = 2.0


def main() -> int:
    """Measure, print and judge."""
    with tempfile.TemporaryDirectory() as state:
        environment = os.environ | {"MEDIAPLANE_STATE": state}
        locations = Locations.from_environment(environment)
        migration.upgrade(locations.database_url)
        starts, imports = [], []
        for _ in range(ROUNDS):
            imports.append(_import_seconds())
            starts.append(_start_seconds(locations, environment))
    start, floor = statistics.median(starts), statistics.median(imports)
    print(f"control plane, start to serving   {start:.2f} s  (median of {ROUNDS})")
    print(f"import grpc, sqlalchemy           {floor:.2f} s")
    print(f"ratio to the bare imports         {start / floor:.2f}")
    print(f"ratio to the limit of {LIMIT_SECONDS:.0f} s         {start / LIMIT_SECONDS:.2f}")
    return int(start > LIMIT_SECONDS)


def _import_seconds() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import grpc, sqlalchemy"], check=True)
    return time.perf_counter() - began


def _start_seconds(locations: Locations, environment: dict[str, str]) -> float:
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "control_plane"], env=environment) as process:
        socket = Path(locations.control_address.removeprefix("unix:"))
        while not (socket.exists() and is_serving(locations.control_address)):
            time.sleep(0.005)
        seconds = time.perf_counter() - began
        process.terminate()
    return seconds


if __name__ == "__main__":
    sys.exit(main())
