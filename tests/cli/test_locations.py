"""Where state, database and sockets are."""

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from sqlalchemy.engine import make_url

from mediaplane.errors import UnusableSettings
from mediaplane.locations import Locations


def test_the_default_is_the_state_home_of_the_user() -> None:
    locations = Locations.from_environment({"XDG_STATE_HOME": "/home/a/.state"})
    assert locations.state == Path("/home/a/.state/mediaplane")
    assert locations.database_url == "sqlite:////home/a/.state/mediaplane/mediaplane.db"
    assert locations.control_address == "unix:/home/a/.state/mediaplane/control.sock"
    assert locations.data_address == "unix:/home/a/.state/mediaplane/data.sock"


def test_a_relative_state_home_is_ignored() -> None:
    locations = Locations.from_environment({"XDG_STATE_HOME": "state"})
    assert locations.state == Path.home() / ".local/state/mediaplane"


def test_the_option_wins_over_the_environment() -> None:
    locations = Locations.from_environment({"MEDIAPLANE_STATE": "/srv/a"}, state="/srv/b")
    assert locations.state == Path("/srv/b")


def test_a_relative_state_directory_is_made_absolute() -> None:
    assert Locations.from_environment({}, state="here").state == Path.cwd() / "here"


def test_sockets_can_lie_apart_from_a_state_directory_that_is_shared() -> None:
    given = {
        "MEDIAPLANE_STATE": "/srv/shared",
        "MEDIAPLANE_SOCKETS": "/run/a",
        "MEDIAPLANE_DATA_ADDRESS": "0.0.0.0:50052",
    }
    locations = Locations.from_environment(given)
    assert locations.control_address == "unix:/run/a/control.sock"
    assert locations.local_data_address == "unix:/run/a/data.sock"
    assert Locations.from_environment(locations.environment()) == locations


def test_each_place_can_be_set_on_its_own() -> None:
    given = {
        "MEDIAPLANE_STATE": "/srv/a",
        "MEDIAPLANE_DATABASE_URL": "postgresql://media@db/media",
        "MEDIAPLANE_CONTROL_ADDRESS": "127.0.0.1:50051",
        "MEDIAPLANE_DATA_ADDRESS": "[::1]:50052",
    }
    assert Locations.from_environment(given).environment() == given


def test_the_environment_of_a_child_gives_the_same_locations(tmp_path: Path) -> None:
    locations = Locations.from_environment({}, state=tmp_path)
    assert Locations.from_environment(locations.environment()) == locations


@pytest.mark.parametrize("name", ["plain", "two words", "50%20", "what?", "a#b", "é", "a&b=c+d"])
def test_the_database_url_leads_to_the_state_directory_whatever_its_name(name: str) -> None:
    locations = Locations.from_environment({}, state=f"/srv/{name}")
    assert make_url(locations.database_url).database == f"/srv/{name}/mediaplane.db"
    assert unquote(locations.control_address) == f"unix:/srv/{name}/control.sock"


def test_a_name_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UnusableSettings, match="not UTF-8"):
        Locations.from_environment({}, state=os.fsdecode(b"/srv/\xff"))


def test_sockets_of_a_long_path_are_in_a_private_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    locations = Locations.from_environment({}, state=tmp_path / ("long" * 30))
    directory = Path(locations.control_address.removeprefix("unix:")).parent
    try:
        assert len(locations.control_address) < 100
        assert directory.stat().st_mode & 0o777 == 0o700
        assert Locations.from_environment({}, state=locations.state) == locations
    finally:
        directory.rmdir()


def test_two_long_paths_do_not_share_sockets(tmp_path: Path) -> None:
    one = Locations.from_environment({}, state=tmp_path / ("one" * 40))
    other = Locations.from_environment({}, state=tmp_path / ("two" * 40))
    try:
        assert one.control_address != other.control_address
    finally:
        for locations in (one, other):
            Path(locations.control_address.removeprefix("unix:")).parent.rmdir()


def test_a_socket_directory_that_others_may_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    state = tmp_path / ("long" * 30)
    locations = Locations.from_environment({}, state=state)
    Path(locations.control_address.removeprefix("unix:")).parent.chmod(0o755)
    with pytest.raises(UnusableSettings, match="not a private directory"):
        Locations.from_environment({}, state=state)


def test_the_state_directory_is_private(tmp_path: Path) -> None:
    locations = Locations.from_environment({}, state=tmp_path / "new")
    locations.prepare()
    assert locations.state.stat().st_mode & 0o777 == 0o700


def test_a_state_directory_that_cannot_be_made_is_an_unusable_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableSettings, match="choose another"):
        Locations.from_environment({}, state=tmp_path / "file").prepare()
