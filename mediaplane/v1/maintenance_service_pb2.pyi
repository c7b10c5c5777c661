import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mediaplane.v1 import job_service_pb2 as _job_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatisticsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetControlPlaneStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ControlPlaneStatus(_message.Message):
    __slots__ = ("version", "start_time", "current_time")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TIME_FIELD_NUMBER: _ClassVar[int]
    version: str
    start_time: _timestamp_pb2.Timestamp
    current_time: _timestamp_pb2.Timestamp
    def __init__(self, version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., current_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Statistics(_message.Message):
    __slots__ = ("files", "bytes", "groups", "duplicate_files", "grouped_files", "reclaimable_bytes", "errors", "libraries", "jobs_by_state", "database")
    FILES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FILES_FIELD_NUMBER: _ClassVar[int]
    GROUPED_FILES_FIELD_NUMBER: _ClassVar[int]
    RECLAIMABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    LIBRARIES_FIELD_NUMBER: _ClassVar[int]
    JOBS_BY_STATE_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    files: int
    bytes: int
    groups: int
    duplicate_files: int
    grouped_files: int
    reclaimable_bytes: int
    errors: int
    libraries: _containers.RepeatedCompositeFieldContainer[LibraryStatistics]
    jobs_by_state: _containers.RepeatedCompositeFieldContainer[JobStateCount]
    database: DatabaseStatistics
    def __init__(self, files: _Optional[int] = ..., bytes: _Optional[int] = ..., groups: _Optional[int] = ..., duplicate_files: _Optional[int] = ..., grouped_files: _Optional[int] = ..., reclaimable_bytes: _Optional[int] = ..., errors: _Optional[int] = ..., libraries: _Optional[_Iterable[_Union[LibraryStatistics, _Mapping]]] = ..., jobs_by_state: _Optional[_Iterable[_Union[JobStateCount, _Mapping]]] = ..., database: _Optional[_Union[DatabaseStatistics, _Mapping]] = ...) -> None: ...

class LibraryStatistics(_message.Message):
    __slots__ = ("library", "files", "bytes", "errors")
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    library: str
    files: int
    bytes: int
    errors: int
    def __init__(self, library: _Optional[str] = ..., files: _Optional[int] = ..., bytes: _Optional[int] = ..., errors: _Optional[int] = ...) -> None: ...

class JobStateCount(_message.Message):
    __slots__ = ("state", "count")
    STATE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    state: _job_service_pb2.Job.State
    count: int
    def __init__(self, state: _Optional[_Union[_job_service_pb2.Job.State, str]] = ..., count: _Optional[int] = ...) -> None: ...

class DatabaseStatistics(_message.Message):
    __slots__ = ("dialect", "server_version", "schema_revision", "size_bytes")
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_REVISION_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    dialect: str
    server_version: str
    schema_revision: str
    size_bytes: int
    def __init__(self, dialect: _Optional[str] = ..., server_version: _Optional[str] = ..., schema_revision: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("name", "mode", "state", "execute_time", "retry_count", "retry_time", "busy", "log_frames", "checkpointed_frames", "error_code", "error_message", "create_time", "start_time", "end_time", "request_id", "worker")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[Checkpoint.Mode]
        MODE_PASSIVE: _ClassVar[Checkpoint.Mode]
        MODE_RESTART: _ClassVar[Checkpoint.Mode]
        MODE_TRUNCATE: _ClassVar[Checkpoint.Mode]
    MODE_UNSPECIFIED: Checkpoint.Mode
    MODE_PASSIVE: Checkpoint.Mode
    MODE_RESTART: Checkpoint.Mode
    MODE_TRUNCATE: Checkpoint.Mode
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Checkpoint.State]
        STATE_PENDING: _ClassVar[Checkpoint.State]
        STATE_RUNNING: _ClassVar[Checkpoint.State]
        STATE_RETRYABLE: _ClassVar[Checkpoint.State]
        STATE_COMPLETED: _ClassVar[Checkpoint.State]
        STATE_FAILED: _ClassVar[Checkpoint.State]
    STATE_UNSPECIFIED: Checkpoint.State
    STATE_PENDING: Checkpoint.State
    STATE_RUNNING: Checkpoint.State
    STATE_RETRYABLE: Checkpoint.State
    STATE_COMPLETED: Checkpoint.State
    STATE_FAILED: Checkpoint.State
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_TIME_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    RETRY_TIME_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    LOG_FRAMES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTED_FRAMES_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    name: str
    mode: Checkpoint.Mode
    state: Checkpoint.State
    execute_time: _timestamp_pb2.Timestamp
    retry_count: int
    retry_time: _timestamp_pb2.Timestamp
    busy: int
    log_frames: int
    checkpointed_frames: int
    error_code: str
    error_message: str
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    request_id: str
    worker: str
    def __init__(self, name: _Optional[str] = ..., mode: _Optional[_Union[Checkpoint.Mode, str]] = ..., state: _Optional[_Union[Checkpoint.State, str]] = ..., execute_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retry_count: _Optional[int] = ..., retry_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., busy: _Optional[int] = ..., log_frames: _Optional[int] = ..., checkpointed_frames: _Optional[int] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., request_id: _Optional[str] = ..., worker: _Optional[str] = ...) -> None: ...

class RequestCheckpointRequest(_message.Message):
    __slots__ = ("mode", "request_id", "force")
    MODE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    mode: Checkpoint.Mode
    request_id: str
    force: bool
    def __init__(self, mode: _Optional[_Union[Checkpoint.Mode, str]] = ..., request_id: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class GetCheckpointRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListCheckpointsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListCheckpointsResponse(_message.Message):
    __slots__ = ("checkpoints", "next_page_token")
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    checkpoints: _containers.RepeatedCompositeFieldContainer[Checkpoint]
    next_page_token: str
    def __init__(self, checkpoints: _Optional[_Iterable[_Union[Checkpoint, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
