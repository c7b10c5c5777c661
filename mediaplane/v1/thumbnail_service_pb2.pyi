import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mediaplane.v1 import asset_service_pb2 as _asset_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Thumbnail(_message.Message):
    __slots__ = ("name", "file", "file_version", "group_key", "media_type", "format", "size_px", "state", "width", "height", "size_bytes", "error_count", "error_code", "error_message", "retry_time", "create_time", "end_time", "degraded")
    class Format(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        FORMAT_UNSPECIFIED: _ClassVar[Thumbnail.Format]
        FORMAT_JPEG: _ClassVar[Thumbnail.Format]
        FORMAT_WEBP: _ClassVar[Thumbnail.Format]
    FORMAT_UNSPECIFIED: Thumbnail.Format
    FORMAT_JPEG: Thumbnail.Format
    FORMAT_WEBP: Thumbnail.Format
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Thumbnail.State]
        STATE_PENDING: _ClassVar[Thumbnail.State]
        STATE_RUNNING: _ClassVar[Thumbnail.State]
        STATE_READY: _ClassVar[Thumbnail.State]
        STATE_FAILED: _ClassVar[Thumbnail.State]
    STATE_UNSPECIFIED: Thumbnail.State
    STATE_PENDING: Thumbnail.State
    STATE_RUNNING: Thumbnail.State
    STATE_READY: Thumbnail.State
    STATE_FAILED: Thumbnail.State
    NAME_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    FILE_VERSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SIZE_PX_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_COUNT_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    name: str
    file: str
    file_version: str
    group_key: str
    media_type: _asset_service_pb2.Asset.Type
    format: Thumbnail.Format
    size_px: int
    state: Thumbnail.State
    width: int
    height: int
    size_bytes: int
    error_count: int
    error_code: str
    error_message: str
    retry_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    degraded: bool
    def __init__(self, name: _Optional[str] = ..., file: _Optional[str] = ..., file_version: _Optional[str] = ..., group_key: _Optional[str] = ..., media_type: _Optional[_Union[_asset_service_pb2.Asset.Type, str]] = ..., format: _Optional[_Union[Thumbnail.Format, str]] = ..., size_px: _Optional[int] = ..., state: _Optional[_Union[Thumbnail.State, str]] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., size_bytes: _Optional[int] = ..., error_count: _Optional[int] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., retry_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., degraded: _Optional[bool] = ...) -> None: ...

class RequestThumbnailRequest(_message.Message):
    __slots__ = ("file", "size_px", "format", "group_key")
    FILE_FIELD_NUMBER: _ClassVar[int]
    SIZE_PX_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    file: str
    size_px: int
    format: Thumbnail.Format
    group_key: str
    def __init__(self, file: _Optional[str] = ..., size_px: _Optional[int] = ..., format: _Optional[_Union[Thumbnail.Format, str]] = ..., group_key: _Optional[str] = ...) -> None: ...

class BatchRequestThumbnailsRequest(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[RequestThumbnailRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[RequestThumbnailRequest, _Mapping]]] = ...) -> None: ...

class BatchRequestThumbnailsResponse(_message.Message):
    __slots__ = ("thumbnails",)
    THUMBNAILS_FIELD_NUMBER: _ClassVar[int]
    thumbnails: _containers.RepeatedCompositeFieldContainer[Thumbnail]
    def __init__(self, thumbnails: _Optional[_Iterable[_Union[Thumbnail, _Mapping]]] = ...) -> None: ...

class GetThumbnailRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListThumbnailsRequest(_message.Message):
    __slots__ = ("file", "group_key", "page_size", "page_token")
    FILE_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    file: str
    group_key: str
    page_size: int
    page_token: str
    def __init__(self, file: _Optional[str] = ..., group_key: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListThumbnailsResponse(_message.Message):
    __slots__ = ("thumbnails", "next_page_token")
    THUMBNAILS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    thumbnails: _containers.RepeatedCompositeFieldContainer[Thumbnail]
    next_page_token: str
    def __init__(self, thumbnails: _Optional[_Iterable[_Union[Thumbnail, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ThumbnailCleanup(_message.Message):
    __slots__ = ("name", "group_key", "state", "execute_time", "error_code", "error_message", "create_time", "end_time")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[ThumbnailCleanup.State]
        STATE_PENDING: _ClassVar[ThumbnailCleanup.State]
        STATE_RUNNING: _ClassVar[ThumbnailCleanup.State]
        STATE_COMPLETED: _ClassVar[ThumbnailCleanup.State]
        STATE_FAILED: _ClassVar[ThumbnailCleanup.State]
    STATE_UNSPECIFIED: ThumbnailCleanup.State
    STATE_PENDING: ThumbnailCleanup.State
    STATE_RUNNING: ThumbnailCleanup.State
    STATE_COMPLETED: ThumbnailCleanup.State
    STATE_FAILED: ThumbnailCleanup.State
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_TIME_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    group_key: str
    state: ThumbnailCleanup.State
    execute_time: _timestamp_pb2.Timestamp
    error_code: str
    error_message: str
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., group_key: _Optional[str] = ..., state: _Optional[_Union[ThumbnailCleanup.State, str]] = ..., execute_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ScheduleCleanupRequest(_message.Message):
    __slots__ = ("group_key", "delay")
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    group_key: str
    delay: _duration_pb2.Duration
    def __init__(self, group_key: _Optional[str] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetCleanupRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
