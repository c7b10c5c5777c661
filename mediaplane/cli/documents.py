"""Turns messages of the wire into JSON documents, and their enums into short names."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from mediaplane.paths import display

if TYPE_CHECKING:
    from google.protobuf.message import Message

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATHS = {"rel_path": "path", "root_path": "root_path"}
# Values of FieldDescriptor, which are part of the protocol buffers' contract.
_TYPE_MESSAGE = 11
_TYPE_BYTES = 12
_TYPE_ENUM = 14


def document(message: "Message") -> dict[str, Any]:
    """A message as plain data: short lowercase enums, RFC 3339 times, None for what is unset.

    A path of raw bytes becomes two fields: printable for people, base64 for programs.
    """
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.type == _TYPE_BYTES and field.name in _PATHS:
            name = _PATHS[field.name]
            found[name] = display(value)
            found[f"{name}_base64"] = base64.b64encode(value).decode()
        elif field.name.removesuffix("_display") in _PATHS:
            continue  # said already
        elif field.is_repeated:
            found[field.name] = [_value(field, item) for item in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _value(field, value)
    return found


def library_document(library: Any) -> dict[str, Any]:
    return {"slug": last_part(library.name), **document(library)}


def job_document(job: Any) -> dict[str, Any]:
    return {"id": int(last_part(job.name)), **document(job)}


def file_document(file: Any) -> dict[str, Any]:
    """A file or an asset, with the slug of its library."""
    return {"library": library_of(file), **document(file)}


def enum_name(message: "Message", field: str) -> str:
    """The short lowercase name of an enum field's value, '' when it is not specified."""
    descriptor = message.DESCRIPTOR.fields_by_name[field].enum_type
    return _short(descriptor, getattr(message, field)) or ""


def last_part(name: str) -> str:
    """'holidays' of 'libraries/holidays'."""
    return name.rpartition("/")[2]


def library_of(file: Any) -> str:
    return str(file.name).split("/")[1]


def time_text(seconds: int, nanos: int) -> str:
    """RFC 3339 in UTC with as many digits as needed."""
    whole = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{nanos:09d}".rstrip("0").rstrip(".")
    return f"{whole}{fraction}Z"


def local_time(message: "Message", field: str) -> str:
    """A time for people, in their time zone; '' when it is unset."""
    return local_moment(getattr(message, field)) if message.HasField(field) else ""


def local_moment(stamp: Any) -> str:
    """A Timestamp for people, in their time zone."""
    moment = _EPOCH + timedelta(seconds=stamp.seconds)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _value(field: Any, value: Any) -> Any:
    if field.type == _TYPE_ENUM:
        return _short(field.enum_type, value)
    if field.type == _TYPE_BYTES:
        return value.hex()
    return _message(value) if field.type == _TYPE_MESSAGE else value


def _message(value: Any) -> Any:
    match value.DESCRIPTOR.full_name:
        case "google.protobuf.Timestamp":
            return time_text(value.seconds, value.nanos)
        case "google.protobuf.Duration":
            return value.ToJsonString()
        case "google.protobuf.Struct":
            return {key: _plain(value[key]) for key in value}
        case _:
            return document(value)


def _plain(value: Any) -> Any:
    """A value inside a Struct, whose numbers all arrive with a fraction."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | float | bool) or value is None:
        return value
    if isinstance(value, Mapping) or hasattr(value, "fields"):
        return {key: _plain(value[key]) for key in value}
    return [_plain(item) for item in value]


def _short(descriptor: Any, number: int) -> str | None:
    """'scan_req' for SCAN_STATUS_SCAN_REQ: the prefix is the name of the enum."""
    known = descriptor.values_by_number.get(number)
    if known is None:
        return str(number)  # a newer server's
    prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return None if number == 0 else known.name.removeprefix(prefix).lower()
