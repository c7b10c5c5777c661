"""Every setting stands in the operator's manual, with its default and its meaning."""

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from control_plane.settings import ControlSettings
from data_plane.settings import DataSettings
from mediaplane import settings
from mediaplane.errors import UnusableSettings

MANUAL = (Path(__file__).parents[2] / "docs" / "OPERATIONS.md").read_text()
SETTINGS = [*fields(ControlSettings), *fields(DataSettings)]


@pytest.mark.parametrize("field", SETTINGS, ids=lambda field: field.name)
def test_a_setting_stands_in_the_manual_with_its_default_and_meaning(field: "Field[Any]") -> None:
    row = f"| `{settings.variable(field.name)}` | {_default(field)} | {field.metadata['help']} |"
    assert row in MANUAL


def _default(field: "Field[Any]") -> str:
    if field.name == "slots":
        return "number of cores, at least 2, and 1 more"
    if field.name == "image_slots":
        return "number of cores"
    if field.default == "" and isinstance(field.default, str):
        return "empty"
    return "`0`" if field.default is False else f"`{field.default}`"


def test_the_manual_lists_no_setting_that_does_not_exist() -> None:
    known = {settings.variable(field.name) for field in SETTINGS} | {
        "MEDIAPLANE_STATE",
        "MEDIAPLANE_SOCKETS",
        "MEDIAPLANE_DATABASE_URL",
        "MEDIAPLANE_CONTROL_ADDRESS",
        "MEDIAPLANE_DATA_ADDRESS",
        "MEDIAPLANE_SERVER",
        "MEDIAPLANE_TRACES",
        "MEDIAPLANE_TOKEN",
        "MEDIAPLANE_TOKEN_FILE",
        "MEDIAPLANE_TLS_CA",
        "MEDIAPLANE_TLS_CLIENT_CERT",
        "MEDIAPLANE_TLS_CLIENT_KEY",
    }
    listed = {
        line.split("`")[1] for line in MANUAL.splitlines() if line.startswith("| `MEDIAPLANE")
    }
    assert listed == known


def test_settings_come_from_the_environment() -> None:
    chosen = settings.read(DataSettings, {"MEDIAPLANE_SLOTS": "3", "MEDIAPLANE_LEASE_SECONDS": "9"})
    assert (chosen.slots, chosen.lease_seconds) == (3, 9.0)
    assert settings.read(ControlSettings, {}) == ControlSettings()


@pytest.mark.parametrize(
    ("variable", "value"), [("MEDIAPLANE_SLOTS", "many"), ("MEDIAPLANE_SLOTS", "0")]
)
def test_an_unusable_value_is_named_with_what_to_do(variable: str, value: str) -> None:
    with pytest.raises(UnusableSettings, match=rf"{variable} is .*{value}.*must be"):
        settings.read(DataSettings, {variable: value})
