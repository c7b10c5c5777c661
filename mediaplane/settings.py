"""Reads the settings of a plane from the environment: one frozen dataclass, read once."""

from collections.abc import Mapping
from dataclasses import MISSING, field, fields
from typing import Any, TypeVar

from mediaplane.errors import UnusableSettings

PREFIX = "MEDIAPLANE_"

Settings = TypeVar("Settings")


def setting(default: Any, help: str, *, minimum: float | None = None) -> Any:  # noqa: A002
    """Declare a setting: its default, one line of help with the unit, and its least value."""
    return field(default=default, metadata={"help": help, "minimum": minimum})


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def read(kind: type[Settings], environ: Mapping[str, str]) -> Settings:
    """Return the settings that the environment gives, defaults where it is silent."""
    chosen: dict[str, Any] = {}
    for item in fields(kind):  # type: ignore[arg-type]
        text = environ.get(variable(item.name))
        if text is None or item.default is MISSING:
            continue
        chosen[item.name] = _parsed(variable(item.name), text, item.default, item.metadata)
    return kind(**chosen)


def _parsed(name: str, text: str, default: Any, metadata: Mapping[str, Any]) -> Any:
    kind = type(default)
    try:
        value = text.strip().lower() in ("1", "true", "yes", "on") if kind is bool else kind(text)
    except ValueError:
        raise UnusableSettings(f"{name} is {text!r}; it must be a number.") from None
    minimum = metadata.get("minimum")
    if minimum is not None and not value >= minimum:
        raise UnusableSettings(f"{name} is {text}; it must be at least {minimum:g}.")
    return value
