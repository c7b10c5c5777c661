import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_KIND_UNSPECIFIED: _ClassVar[JobKind]
    JOB_KIND_SCAN: _ClassVar[JobKind]
    JOB_KIND_HASH: _ClassVar[JobKind]
    JOB_KIND_DELETE: _ClassVar[JobKind]
    JOB_KIND_THUMBNAIL: _ClassVar[JobKind]
    JOB_KIND_PROBE: _ClassVar[JobKind]
    JOB_KIND_VERIFY: _ClassVar[JobKind]
    JOB_KIND_SWEEP: _ClassVar[JobKind]
JOB_KIND_UNSPECIFIED: JobKind
JOB_KIND_SCAN: JobKind
JOB_KIND_HASH: JobKind
JOB_KIND_DELETE: JobKind
JOB_KIND_THUMBNAIL: JobKind
JOB_KIND_PROBE: JobKind
JOB_KIND_VERIFY: JobKind
JOB_KIND_SWEEP: JobKind

class Probe(_message.Message):
    __slots__ = ("duration", "items", "scratch_bytes")
    DURATION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SCRATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    items: int
    scratch_bytes: int
    def __init__(self, duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., items: _Optional[int] = ..., scratch_bytes: _Optional[int] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("name", "kind", "state", "library", "priority", "progress", "processed_items", "total_items", "total_bytes", "attempts", "max_attempts", "error_code", "error_message", "skip_reason", "worker", "cancel_requested", "retry_of", "request_id", "create_time", "start_time", "end_time", "update_time", "retry_time", "completed_items", "failed_items", "skipped_items", "cancelled_items", "probe", "tenant")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Job.State]
        STATE_PENDING: _ClassVar[Job.State]
        STATE_RUNNING: _ClassVar[Job.State]
        STATE_COMPLETED: _ClassVar[Job.State]
        STATE_FAILED: _ClassVar[Job.State]
        STATE_CANCELLED: _ClassVar[Job.State]
        STATE_RETRYABLE: _ClassVar[Job.State]
        STATE_SKIPPED: _ClassVar[Job.State]
    STATE_UNSPECIFIED: Job.State
    STATE_PENDING: Job.State
    STATE_RUNNING: Job.State
    STATE_COMPLETED: Job.State
    STATE_FAILED: Job.State
    STATE_CANCELLED: Job.State
    STATE_RETRYABLE: Job.State
    STATE_SKIPPED: Job.State
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROCESSED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SKIP_REASON_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    RETRY_OF_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    RETRY_TIME_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: JobKind
    state: Job.State
    library: str
    priority: int
    progress: float
    processed_items: int
    total_items: int
    total_bytes: int
    attempts: int
    max_attempts: int
    error_code: str
    error_message: str
    skip_reason: str
    worker: str
    cancel_requested: bool
    retry_of: str
    request_id: str
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    retry_time: _timestamp_pb2.Timestamp
    completed_items: int
    failed_items: int
    skipped_items: int
    cancelled_items: int
    probe: Probe
    tenant: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[JobKind, str]] = ..., state: _Optional[_Union[Job.State, str]] = ..., library: _Optional[str] = ..., priority: _Optional[int] = ..., progress: _Optional[float] = ..., processed_items: _Optional[int] = ..., total_items: _Optional[int] = ..., total_bytes: _Optional[int] = ..., attempts: _Optional[int] = ..., max_attempts: _Optional[int] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., skip_reason: _Optional[str] = ..., worker: _Optional[str] = ..., cancel_requested: _Optional[bool] = ..., retry_of: _Optional[str] = ..., request_id: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retry_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed_items: _Optional[int] = ..., failed_items: _Optional[int] = ..., skipped_items: _Optional[int] = ..., cancelled_items: _Optional[int] = ..., probe: _Optional[_Union[Probe, _Mapping]] = ..., tenant: _Optional[str] = ...) -> None: ...

class JobItem(_message.Message):
    __slots__ = ("name", "state", "message", "processed_items", "total_items", "worker", "create_time", "update_time")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[JobItem.State]
        STATE_PENDING: _ClassVar[JobItem.State]
        STATE_RUNNING: _ClassVar[JobItem.State]
        STATE_COMPLETED: _ClassVar[JobItem.State]
        STATE_FAILED: _ClassVar[JobItem.State]
        STATE_SKIPPED: _ClassVar[JobItem.State]
        STATE_CANCELLED: _ClassVar[JobItem.State]
    STATE_UNSPECIFIED: JobItem.State
    STATE_PENDING: JobItem.State
    STATE_RUNNING: JobItem.State
    STATE_COMPLETED: JobItem.State
    STATE_FAILED: JobItem.State
    STATE_SKIPPED: JobItem.State
    STATE_CANCELLED: JobItem.State
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PROCESSED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ITEMS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: JobItem.State
    message: str
    processed_items: int
    total_items: int
    worker: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[JobItem.State, str]] = ..., message: _Optional[str] = ..., processed_items: _Optional[int] = ..., total_items: _Optional[int] = ..., worker: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("name", "id", "type", "payload", "create_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: int
    type: str
    payload: _struct_pb2.Struct
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., id: _Optional[int] = ..., type: _Optional[str] = ..., payload: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateJobRequest(_message.Message):
    __slots__ = ("job", "request_id")
    JOB_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    job: Job
    request_id: str
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class BatchCreateJobsRequest(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[CreateJobRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[CreateJobRequest, _Mapping]]] = ...) -> None: ...

class BatchCreateJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "kinds")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[Job.State]
    kinds: _containers.RepeatedScalarFieldContainer[JobKind]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[Job.State, str]]] = ..., kinds: _Optional[_Iterable[_Union[JobKind, str]]] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RetryJobRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class WatchJobsRequest(_message.Message):
    __slots__ = ("names", "after_event_id")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    AFTER_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    after_event_id: int
    def __init__(self, names: _Optional[_Iterable[str]] = ..., after_event_id: _Optional[int] = ...) -> None: ...

class WatchJobsResponse(_message.Message):
    __slots__ = ("job", "event", "event_id")
    JOB_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    job: Job
    event: Event
    event_id: int
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., event_id: _Optional[int] = ...) -> None: ...

class ListJobItemsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListJobItemsResponse(_message.Message):
    __slots__ = ("items", "next_page_token")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[JobItem]
    next_page_token: str
    def __init__(self, items: _Optional[_Iterable[_Union[JobItem, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token", "after_event_id")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AFTER_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    after_event_id: int
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., after_event_id: _Optional[int] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
