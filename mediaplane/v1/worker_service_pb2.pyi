import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Worker(_message.Message):
    __slots__ = ("name", "state", "command", "stats", "last_seen_time", "start_time", "command_time")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Worker.State]
        STATE_IDLE: _ClassVar[Worker.State]
        STATE_PROCESSING: _ClassVar[Worker.State]
        STATE_PAUSED: _ClassVar[Worker.State]
        STATE_OFFLINE: _ClassVar[Worker.State]
    STATE_UNSPECIFIED: Worker.State
    STATE_IDLE: Worker.State
    STATE_PROCESSING: Worker.State
    STATE_PAUSED: Worker.State
    STATE_OFFLINE: Worker.State
    class Command(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        COMMAND_UNSPECIFIED: _ClassVar[Worker.Command]
        COMMAND_NONE: _ClassVar[Worker.Command]
        COMMAND_PAUSE: _ClassVar[Worker.Command]
        COMMAND_RESUME: _ClassVar[Worker.Command]
        COMMAND_SHUTDOWN: _ClassVar[Worker.Command]
        COMMAND_FORENSIC_DUMP: _ClassVar[Worker.Command]
    COMMAND_UNSPECIFIED: Worker.Command
    COMMAND_NONE: Worker.Command
    COMMAND_PAUSE: Worker.Command
    COMMAND_RESUME: Worker.Command
    COMMAND_SHUTDOWN: Worker.Command
    COMMAND_FORENSIC_DUMP: Worker.Command
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: Worker.State
    command: Worker.Command
    stats: _struct_pb2.Struct
    last_seen_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    command_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[Worker.State, str]] = ..., command: _Optional[_Union[Worker.Command, str]] = ..., stats: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., last_seen_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., command_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers", "next_page_token")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    next_page_token: str
    def __init__(self, workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CommandWorkerRequest(_message.Message):
    __slots__ = ("name", "command")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    name: str
    command: Worker.Command
    def __init__(self, name: _Optional[str] = ..., command: _Optional[_Union[Worker.Command, str]] = ...) -> None: ...
