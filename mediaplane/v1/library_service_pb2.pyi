import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mediaplane.v1 import job_service_pb2 as _job_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HashAlgorithm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HASH_ALGORITHM_UNSPECIFIED: _ClassVar[HashAlgorithm]
    HASH_ALGORITHM_BLAKE3: _ClassVar[HashAlgorithm]
    HASH_ALGORITHM_SHA256: _ClassVar[HashAlgorithm]
HASH_ALGORITHM_UNSPECIFIED: HashAlgorithm
HASH_ALGORITHM_BLAKE3: HashAlgorithm
HASH_ALGORITHM_SHA256: HashAlgorithm

class Library(_message.Message):
    __slots__ = ("name", "display_name", "root_path", "root_path_display", "is_active", "scan_status", "hash_policy", "hash_algorithm", "sampling_limit", "create_time", "update_time", "last_scan", "include_globs", "exclude_globs", "skips_hidden", "crosses_filesystems", "min_size_bytes", "delete_time", "sampling_policy", "tenant")
    class ScanStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SCAN_STATUS_UNSPECIFIED: _ClassVar[Library.ScanStatus]
        SCAN_STATUS_IDLE: _ClassVar[Library.ScanStatus]
        SCAN_STATUS_SCAN_REQ: _ClassVar[Library.ScanStatus]
        SCAN_STATUS_SCANNING: _ClassVar[Library.ScanStatus]
    SCAN_STATUS_UNSPECIFIED: Library.ScanStatus
    SCAN_STATUS_IDLE: Library.ScanStatus
    SCAN_STATUS_SCAN_REQ: Library.ScanStatus
    SCAN_STATUS_SCANNING: Library.ScanStatus
    class HashPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        HASH_POLICY_UNSPECIFIED: _ClassVar[Library.HashPolicy]
        HASH_POLICY_CANDIDATES: _ClassVar[Library.HashPolicy]
        HASH_POLICY_ALL: _ClassVar[Library.HashPolicy]
    HASH_POLICY_UNSPECIFIED: Library.HashPolicy
    HASH_POLICY_CANDIDATES: Library.HashPolicy
    HASH_POLICY_ALL: Library.HashPolicy
    NAME_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    ROOT_PATH_FIELD_NUMBER: _ClassVar[int]
    ROOT_PATH_DISPLAY_FIELD_NUMBER: _ClassVar[int]
    IS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    SCAN_STATUS_FIELD_NUMBER: _ClassVar[int]
    HASH_POLICY_FIELD_NUMBER: _ClassVar[int]
    HASH_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_SCAN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_GLOBS_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_GLOBS_FIELD_NUMBER: _ClassVar[int]
    SKIPS_HIDDEN_FIELD_NUMBER: _ClassVar[int]
    CROSSES_FILESYSTEMS_FIELD_NUMBER: _ClassVar[int]
    MIN_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DELETE_TIME_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_POLICY_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    name: str
    display_name: str
    root_path: bytes
    root_path_display: str
    is_active: bool
    scan_status: Library.ScanStatus
    hash_policy: Library.HashPolicy
    hash_algorithm: HashAlgorithm
    sampling_limit: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    last_scan: ScanSession
    include_globs: _containers.RepeatedScalarFieldContainer[str]
    exclude_globs: _containers.RepeatedScalarFieldContainer[str]
    skips_hidden: bool
    crosses_filesystems: bool
    min_size_bytes: int
    delete_time: _timestamp_pb2.Timestamp
    sampling_policy: SamplingPolicy
    tenant: str
    def __init__(self, name: _Optional[str] = ..., display_name: _Optional[str] = ..., root_path: _Optional[bytes] = ..., root_path_display: _Optional[str] = ..., is_active: _Optional[bool] = ..., scan_status: _Optional[_Union[Library.ScanStatus, str]] = ..., hash_policy: _Optional[_Union[Library.HashPolicy, str]] = ..., hash_algorithm: _Optional[_Union[HashAlgorithm, str]] = ..., sampling_limit: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_scan: _Optional[_Union[ScanSession, _Mapping]] = ..., include_globs: _Optional[_Iterable[str]] = ..., exclude_globs: _Optional[_Iterable[str]] = ..., skips_hidden: _Optional[bool] = ..., crosses_filesystems: _Optional[bool] = ..., min_size_bytes: _Optional[int] = ..., delete_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sampling_policy: _Optional[_Union[SamplingPolicy, _Mapping]] = ..., tenant: _Optional[str] = ...) -> None: ...

class SamplingPolicy(_message.Message):
    __slots__ = ("measure",)
    class Measure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MEASURE_UNSPECIFIED: _ClassVar[SamplingPolicy.Measure]
        MEASURE_MSE: _ClassVar[SamplingPolicy.Measure]
        MEASURE_SSIM: _ClassVar[SamplingPolicy.Measure]
    MEASURE_UNSPECIFIED: SamplingPolicy.Measure
    MEASURE_MSE: SamplingPolicy.Measure
    MEASURE_SSIM: SamplingPolicy.Measure
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    measure: SamplingPolicy.Measure
    def __init__(self, measure: _Optional[_Union[SamplingPolicy.Measure, str]] = ...) -> None: ...

class ScanSession(_message.Message):
    __slots__ = ("id", "state", "start_time", "end_time", "seen_files", "seen_bytes", "new_files", "changed_files", "missing_files", "errored_files", "error_code", "error_message")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[ScanSession.State]
        STATE_RUNNING: _ClassVar[ScanSession.State]
        STATE_SUCCEEDED: _ClassVar[ScanSession.State]
        STATE_FAILED: _ClassVar[ScanSession.State]
    STATE_UNSPECIFIED: ScanSession.State
    STATE_RUNNING: ScanSession.State
    STATE_SUCCEEDED: ScanSession.State
    STATE_FAILED: ScanSession.State
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    SEEN_FILES_FIELD_NUMBER: _ClassVar[int]
    SEEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    NEW_FILES_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FILES_FIELD_NUMBER: _ClassVar[int]
    MISSING_FILES_FIELD_NUMBER: _ClassVar[int]
    ERRORED_FILES_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    id: int
    state: ScanSession.State
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    seen_files: int
    seen_bytes: int
    new_files: int
    changed_files: int
    missing_files: int
    errored_files: int
    error_code: str
    error_message: str
    def __init__(self, id: _Optional[int] = ..., state: _Optional[_Union[ScanSession.State, str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., seen_files: _Optional[int] = ..., seen_bytes: _Optional[int] = ..., new_files: _Optional[int] = ..., changed_files: _Optional[int] = ..., missing_files: _Optional[int] = ..., errored_files: _Optional[int] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class File(_message.Message):
    __slots__ = ("name", "rel_path", "rel_path_display", "size_bytes", "modify_time_ns", "device", "inode", "is_missing", "needs_hash", "hash_algorithm", "content_hash", "group_key", "error_code", "error_message", "create_time", "update_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REL_PATH_FIELD_NUMBER: _ClassVar[int]
    REL_PATH_DISPLAY_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MODIFY_TIME_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    INODE_FIELD_NUMBER: _ClassVar[int]
    IS_MISSING_FIELD_NUMBER: _ClassVar[int]
    NEEDS_HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    rel_path: bytes
    rel_path_display: str
    size_bytes: int
    modify_time_ns: int
    device: int
    inode: int
    is_missing: bool
    needs_hash: bool
    hash_algorithm: HashAlgorithm
    content_hash: bytes
    group_key: str
    error_code: str
    error_message: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., rel_path: _Optional[bytes] = ..., rel_path_display: _Optional[str] = ..., size_bytes: _Optional[int] = ..., modify_time_ns: _Optional[int] = ..., device: _Optional[int] = ..., inode: _Optional[int] = ..., is_missing: _Optional[bool] = ..., needs_hash: _Optional[bool] = ..., hash_algorithm: _Optional[_Union[HashAlgorithm, str]] = ..., content_hash: _Optional[bytes] = ..., group_key: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateLibraryRequest(_message.Message):
    __slots__ = ("library", "library_id")
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_ID_FIELD_NUMBER: _ClassVar[int]
    library: Library
    library_id: str
    def __init__(self, library: _Optional[_Union[Library, _Mapping]] = ..., library_id: _Optional[str] = ...) -> None: ...

class GetLibraryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListLibrariesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "in_trash")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    IN_TRASH_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    in_trash: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., in_trash: _Optional[bool] = ...) -> None: ...

class ListLibrariesResponse(_message.Message):
    __slots__ = ("libraries", "next_page_token")
    LIBRARIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    libraries: _containers.RepeatedCompositeFieldContainer[Library]
    next_page_token: str
    def __init__(self, libraries: _Optional[_Iterable[_Union[Library, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateLibraryRequest(_message.Message):
    __slots__ = ("library", "update_mask")
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    library: Library
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, library: _Optional[_Union[Library, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class DeleteLibraryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RestoreLibraryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PurgeLibraryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PurgeLibraryResponse(_message.Message):
    __slots__ = ("removed_rows", "is_gone")
    REMOVED_ROWS_FIELD_NUMBER: _ClassVar[int]
    IS_GONE_FIELD_NUMBER: _ClassVar[int]
    removed_rows: int
    is_gone: bool
    def __init__(self, removed_rows: _Optional[int] = ..., is_gone: _Optional[bool] = ...) -> None: ...

class ScanLibraryRequest(_message.Message):
    __slots__ = ("name", "accept_new_root")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_NEW_ROOT_FIELD_NUMBER: _ClassVar[int]
    name: str
    accept_new_root: bool
    def __init__(self, name: _Optional[str] = ..., accept_new_root: _Optional[bool] = ...) -> None: ...

class HashLibraryRequest(_message.Message):
    __slots__ = ("name", "tenant")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    name: str
    tenant: str
    def __init__(self, name: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class ListFilesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token", "has_error", "include_missing", "rel_path")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    HAS_ERROR_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_MISSING_FIELD_NUMBER: _ClassVar[int]
    REL_PATH_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    has_error: bool
    include_missing: bool
    rel_path: bytes
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., has_error: _Optional[bool] = ..., include_missing: _Optional[bool] = ..., rel_path: _Optional[bytes] = ...) -> None: ...

class ListFilesResponse(_message.Message):
    __slots__ = ("files", "next_page_token")
    FILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[File]
    next_page_token: str
    def __init__(self, files: _Optional[_Iterable[_Union[File, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ScanError(_message.Message):
    __slots__ = ("rel_path", "rel_path_display", "error_code", "error_message")
    REL_PATH_FIELD_NUMBER: _ClassVar[int]
    REL_PATH_DISPLAY_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    rel_path: bytes
    rel_path_display: str
    error_code: str
    error_message: str
    def __init__(self, rel_path: _Optional[bytes] = ..., rel_path_display: _Optional[str] = ..., error_code: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class ListScanErrorsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListScanErrorsResponse(_message.Message):
    __slots__ = ("scan_errors", "next_page_token")
    SCAN_ERRORS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    scan_errors: _containers.RepeatedCompositeFieldContainer[ScanError]
    next_page_token: str
    def __init__(self, scan_errors: _Optional[_Iterable[_Union[ScanError, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
