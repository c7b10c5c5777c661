import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Asset(_message.Message):
    __slots__ = ("name", "rel_path", "rel_path_display", "type", "state", "size_bytes", "modify_time_seconds", "retry_count", "error_code", "error_message", "create_time", "update_time")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TYPE_UNSPECIFIED: _ClassVar[Asset.Type]
        TYPE_IMAGE: _ClassVar[Asset.Type]
        TYPE_VIDEO: _ClassVar[Asset.Type]
    TYPE_UNSPECIFIED: Asset.Type
    TYPE_IMAGE: Asset.Type
    TYPE_VIDEO: Asset.Type
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Asset.State]
        STATE_PENDING: _ClassVar[Asset.State]
        STATE_EXTRACTING: _ClassVar[Asset.State]
        STATE_PROXIED: _ClassVar[Asset.State]
        STATE_ANALYZING: _ClassVar[Asset.State]
        STATE_COMPLETED: _ClassVar[Asset.State]
        STATE_FAILED: _ClassVar[Asset.State]
        STATE_POISONED: _ClassVar[Asset.State]
    STATE_UNSPECIFIED: Asset.State
    STATE_PENDING: Asset.State
    STATE_EXTRACTING: Asset.State
    STATE_PROXIED: Asset.State
    STATE_ANALYZING: Asset.State
    STATE_COMPLETED: Asset.State
    STATE_FAILED: Asset.State
    STATE_POISONED: Asset.State
    NAME_FIELD_NUMBER: _ClassVar[int]
    REL_PATH_FIELD_NUMBER: _ClassVar[int]
    REL_PATH_DISPLAY_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MODIFY_TIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    rel_path: bytes
    rel_path_display: str
    type: Asset.Type
    state: Asset.State
    size_bytes: int
    modify_time_seconds: float
    retry_count: int
    error_code: str
    error_message: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., rel_path: _Optional[bytes] = ..., rel_path_display: _Optional[str] = ..., type: _Optional[_Union[Asset.Type, str]] = ..., state: _Optional[_Union[Asset.State, str]] = ..., size_bytes: _Optional[int] = ..., modify_time_seconds: _Optional[float] = ..., retry_count: _Optional[int] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListAssetsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAssetsResponse(_message.Message):
    __slots__ = ("assets", "next_page_token")
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    assets: _containers.RepeatedCompositeFieldContainer[Asset]
    next_page_token: str
    def __init__(self, assets: _Optional[_Iterable[_Union[Asset, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
