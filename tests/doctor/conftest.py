"""What tests of the doctor share: an installation on this machine, and how findings are read."""

from pathlib import Path

import pytest

from mediaplane.locations import Locations


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    """An installation that was prepared and has not run yet."""
    found = Locations.from_environment({"MEDIAPLANE_STATE": str(tmp_path / "state")})
    found.prepare()
    return found
