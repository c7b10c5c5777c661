import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Schedule(_message.Message):
    __slots__ = ("name", "action", "library", "cron", "time_zone", "missed_runs", "is_enabled", "next_run_time", "upcoming_run_times", "last_run_time", "last_outcome", "last_error", "last_job", "last_skip_time", "last_skip_reason", "create_time", "update_time")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ACTION_UNSPECIFIED: _ClassVar[Schedule.Action]
        ACTION_RESCAN: _ClassVar[Schedule.Action]
        ACTION_VERIFY: _ClassVar[Schedule.Action]
        ACTION_SWEEP: _ClassVar[Schedule.Action]
        ACTION_CLEANUP: _ClassVar[Schedule.Action]
        ACTION_RETENTION: _ClassVar[Schedule.Action]
        ACTION_CHECKPOINT: _ClassVar[Schedule.Action]
    ACTION_UNSPECIFIED: Schedule.Action
    ACTION_RESCAN: Schedule.Action
    ACTION_VERIFY: Schedule.Action
    ACTION_SWEEP: Schedule.Action
    ACTION_CLEANUP: Schedule.Action
    ACTION_RETENTION: Schedule.Action
    ACTION_CHECKPOINT: Schedule.Action
    class MissedRuns(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MISSED_RUNS_UNSPECIFIED: _ClassVar[Schedule.MissedRuns]
        MISSED_RUNS_SKIP: _ClassVar[Schedule.MissedRuns]
        MISSED_RUNS_RUN_ONCE: _ClassVar[Schedule.MissedRuns]
    MISSED_RUNS_UNSPECIFIED: Schedule.MissedRuns
    MISSED_RUNS_SKIP: Schedule.MissedRuns
    MISSED_RUNS_RUN_ONCE: Schedule.MissedRuns
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[Schedule.Outcome]
        OUTCOME_NONE: _ClassVar[Schedule.Outcome]
        OUTCOME_RUNNING: _ClassVar[Schedule.Outcome]
        OUTCOME_COMPLETED: _ClassVar[Schedule.Outcome]
        OUTCOME_FAILED: _ClassVar[Schedule.Outcome]
    OUTCOME_UNSPECIFIED: Schedule.Outcome
    OUTCOME_NONE: Schedule.Outcome
    OUTCOME_RUNNING: Schedule.Outcome
    OUTCOME_COMPLETED: Schedule.Outcome
    OUTCOME_FAILED: Schedule.Outcome
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    MISSED_RUNS_FIELD_NUMBER: _ClassVar[int]
    IS_ENABLED_FIELD_NUMBER: _ClassVar[int]
    NEXT_RUN_TIME_FIELD_NUMBER: _ClassVar[int]
    UPCOMING_RUN_TIMES_FIELD_NUMBER: _ClassVar[int]
    LAST_RUN_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_OUTCOME_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LAST_JOB_FIELD_NUMBER: _ClassVar[int]
    LAST_SKIP_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_SKIP_REASON_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    action: Schedule.Action
    library: str
    cron: str
    time_zone: str
    missed_runs: Schedule.MissedRuns
    is_enabled: bool
    next_run_time: _timestamp_pb2.Timestamp
    upcoming_run_times: _containers.RepeatedCompositeFieldContainer[_timestamp_pb2.Timestamp]
    last_run_time: _timestamp_pb2.Timestamp
    last_outcome: Schedule.Outcome
    last_error: str
    last_job: str
    last_skip_time: _timestamp_pb2.Timestamp
    last_skip_reason: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., action: _Optional[_Union[Schedule.Action, str]] = ..., library: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., missed_runs: _Optional[_Union[Schedule.MissedRuns, str]] = ..., is_enabled: _Optional[bool] = ..., next_run_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., upcoming_run_times: _Optional[_Iterable[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]]] = ..., last_run_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_outcome: _Optional[_Union[Schedule.Outcome, str]] = ..., last_error: _Optional[str] = ..., last_job: _Optional[str] = ..., last_skip_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_skip_reason: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListSchedulesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSchedulesResponse(_message.Message):
    __slots__ = ("schedules", "next_page_token")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[Schedule]
    next_page_token: str
    def __init__(self, schedules: _Optional[_Iterable[_Union[Schedule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetScheduleRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CreateScheduleRequest(_message.Message):
    __slots__ = ("schedule", "schedule_id")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    schedule_id: str
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., schedule_id: _Optional[str] = ...) -> None: ...

class UpdateScheduleRequest(_message.Message):
    __slots__ = ("schedule", "update_mask")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class DeleteScheduleRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteScheduleResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RunScheduleRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
