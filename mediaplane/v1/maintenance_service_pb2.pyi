import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mediaplane.v1 import job_service_pb2 as _job_service_pb2
from google.protobuf.internal import containers as _containers
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
