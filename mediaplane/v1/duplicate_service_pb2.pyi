from mediaplane.v1 import library_service_pb2 as _library_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DuplicateGroup(_message.Message):
    __slots__ = ("name", "group_key", "hash_algorithm", "content_hash", "file_count", "total_size_bytes", "size_bytes", "reclaimable_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    HASH_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    FILE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECLAIMABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    group_key: str
    hash_algorithm: _library_service_pb2.HashAlgorithm
    content_hash: bytes
    file_count: int
    total_size_bytes: int
    size_bytes: int
    reclaimable_bytes: int
    def __init__(self, name: _Optional[str] = ..., group_key: _Optional[str] = ..., hash_algorithm: _Optional[_Union[_library_service_pb2.HashAlgorithm, str]] = ..., content_hash: _Optional[bytes] = ..., file_count: _Optional[int] = ..., total_size_bytes: _Optional[int] = ..., size_bytes: _Optional[int] = ..., reclaimable_bytes: _Optional[int] = ...) -> None: ...

class ListDuplicateGroupsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDuplicateGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[DuplicateGroup]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[DuplicateGroup, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListDuplicateFilesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDuplicateFilesResponse(_message.Message):
    __slots__ = ("files", "next_page_token")
    FILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[_library_service_pb2.File]
    next_page_token: str
    def __init__(self, files: _Optional[_Iterable[_Union[_library_service_pb2.File, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
