import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mediaplane.v1 import worker_service_pb2 as _worker_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DataPlaneStatus(_message.Message):
    __slots__ = ("worker", "state", "version", "start_time", "running", "resolver", "current_time")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    RESOLVER_FIELD_NUMBER: _ClassVar[int]
    CURRENT_TIME_FIELD_NUMBER: _ClassVar[int]
    worker: str
    state: _worker_service_pb2.Worker.State
    version: str
    start_time: _timestamp_pb2.Timestamp
    running: _containers.RepeatedCompositeFieldContainer[RunningTask]
    resolver: str
    current_time: _timestamp_pb2.Timestamp
    def __init__(self, worker: _Optional[str] = ..., state: _Optional[_Union[_worker_service_pb2.Worker.State, str]] = ..., version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., running: _Optional[_Iterable[_Union[RunningTask, _Mapping]]] = ..., resolver: _Optional[str] = ..., current_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RunningTask(_message.Message):
    __slots__ = ("job", "item", "step", "start_time")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    job: str
    item: str
    step: str
    start_time: _timestamp_pb2.Timestamp
    def __init__(self, job: _Optional[str] = ..., item: _Optional[str] = ..., step: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ProbeRootRequest(_message.Message):
    __slots__ = ("root_path",)
    ROOT_PATH_FIELD_NUMBER: _ClassVar[int]
    root_path: bytes
    def __init__(self, root_path: _Optional[bytes] = ...) -> None: ...

class ProbeRootResponse(_message.Message):
    __slots__ = ("state", "device", "inode", "filesystem_type", "message", "filesystem_id")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[ProbeRootResponse.State]
        STATE_OK: _ClassVar[ProbeRootResponse.State]
        STATE_NOT_FOUND: _ClassVar[ProbeRootResponse.State]
        STATE_NOT_A_DIRECTORY: _ClassVar[ProbeRootResponse.State]
        STATE_NOT_READABLE: _ClassVar[ProbeRootResponse.State]
        STATE_EMPTY: _ClassVar[ProbeRootResponse.State]
    STATE_UNSPECIFIED: ProbeRootResponse.State
    STATE_OK: ProbeRootResponse.State
    STATE_NOT_FOUND: ProbeRootResponse.State
    STATE_NOT_A_DIRECTORY: ProbeRootResponse.State
    STATE_NOT_READABLE: ProbeRootResponse.State
    STATE_EMPTY: ProbeRootResponse.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    INODE_FIELD_NUMBER: _ClassVar[int]
    FILESYSTEM_TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FILESYSTEM_ID_FIELD_NUMBER: _ClassVar[int]
    state: ProbeRootResponse.State
    device: int
    inode: int
    filesystem_type: str
    message: str
    filesystem_id: int
    def __init__(self, state: _Optional[_Union[ProbeRootResponse.State, str]] = ..., device: _Optional[int] = ..., inode: _Optional[int] = ..., filesystem_type: _Optional[str] = ..., message: _Optional[str] = ..., filesystem_id: _Optional[int] = ...) -> None: ...
