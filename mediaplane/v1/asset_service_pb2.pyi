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
    __slots__ = ("name", "rel_path", "rel_path_display", "type", "state", "size_bytes", "modify_time_seconds", "retry_count", "error_code", "error_message", "create_time", "update_time", "version_id", "width", "height", "duration_ms", "poster_timestamp_ms", "degraded")
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
    VERSION_ID_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    POSTER_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
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
    version_id: str
    width: int
    height: int
    duration_ms: int
    poster_timestamp_ms: int
    degraded: bool
    def __init__(self, name: _Optional[str] = ..., rel_path: _Optional[bytes] = ..., rel_path_display: _Optional[str] = ..., type: _Optional[_Union[Asset.Type, str]] = ..., state: _Optional[_Union[Asset.State, str]] = ..., size_bytes: _Optional[int] = ..., modify_time_seconds: _Optional[float] = ..., retry_count: _Optional[int] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version_id: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., duration_ms: _Optional[int] = ..., poster_timestamp_ms: _Optional[int] = ..., degraded: _Optional[bool] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("name", "timestamp_ms", "keyframe")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    KEYFRAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    timestamp_ms: int
    keyframe: bool
    def __init__(self, name: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., keyframe: _Optional[bool] = ...) -> None: ...

class ListAssetsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token", "state")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    state: Asset.State
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., state: _Optional[_Union[Asset.State, str]] = ...) -> None: ...

class ListAssetsResponse(_message.Message):
    __slots__ = ("assets", "next_page_token")
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    assets: _containers.RepeatedCompositeFieldContainer[Asset]
    next_page_token: str
    def __init__(self, assets: _Optional[_Iterable[_Union[Asset, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetAssetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListFramesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFramesResponse(_message.Message):
    __slots__ = ("frames", "next_page_token")
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    frames: _containers.RepeatedCompositeFieldContainer[Frame]
    next_page_token: str
    def __init__(self, frames: _Optional[_Iterable[_Union[Frame, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RetryAssetRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RetryAssetsRequest(_message.Message):
    __slots__ = ("parent",)
    PARENT_FIELD_NUMBER: _ClassVar[int]
    parent: str
    def __init__(self, parent: _Optional[str] = ...) -> None: ...

class RetryAssetsResponse(_message.Message):
    __slots__ = ("retried_assets",)
    RETRIED_ASSETS_FIELD_NUMBER: _ClassVar[int]
    retried_assets: int
    def __init__(self, retried_assets: _Optional[int] = ...) -> None: ...

class GetPipelineStatusRequest(_message.Message):
    __slots__ = ("parent", "libraries", "omit_failed")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LIBRARIES_FIELD_NUMBER: _ClassVar[int]
    OMIT_FAILED_FIELD_NUMBER: _ClassVar[int]
    parent: str
    libraries: _containers.RepeatedScalarFieldContainer[str]
    omit_failed: bool
    def __init__(self, parent: _Optional[str] = ..., libraries: _Optional[_Iterable[str]] = ..., omit_failed: _Optional[bool] = ...) -> None: ...

class PipelineStatus(_message.Message):
    __slots__ = ("waiting_images", "waiting_videos", "running_assets", "failed_assets")
    WAITING_IMAGES_FIELD_NUMBER: _ClassVar[int]
    WAITING_VIDEOS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_ASSETS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ASSETS_FIELD_NUMBER: _ClassVar[int]
    waiting_images: int
    waiting_videos: int
    running_assets: int
    failed_assets: int
    def __init__(self, waiting_images: _Optional[int] = ..., waiting_videos: _Optional[int] = ..., running_assets: _Optional[int] = ..., failed_assets: _Optional[int] = ...) -> None: ...
