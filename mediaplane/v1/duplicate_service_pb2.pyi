from mediaplane.v1 import asset_service_pb2 as _asset_service_pb2
from mediaplane.v1 import library_service_pb2 as _library_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DuplicateGroup(_message.Message):
    __slots__ = ("name", "group_key", "hash_algorithm", "content_hash", "file_count", "total_size_bytes", "size_bytes", "reclaimable_bytes", "tenant")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_KEY_FIELD_NUMBER: _ClassVar[int]
    HASH_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    FILE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECLAIMABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    name: str
    group_key: str
    hash_algorithm: _library_service_pb2.HashAlgorithm
    content_hash: bytes
    file_count: int
    total_size_bytes: int
    size_bytes: int
    reclaimable_bytes: int
    tenant: str
    def __init__(self, name: _Optional[str] = ..., group_key: _Optional[str] = ..., hash_algorithm: _Optional[_Union[_library_service_pb2.HashAlgorithm, str]] = ..., content_hash: _Optional[bytes] = ..., file_count: _Optional[int] = ..., total_size_bytes: _Optional[int] = ..., size_bytes: _Optional[int] = ..., reclaimable_bytes: _Optional[int] = ..., tenant: _Optional[str] = ...) -> None: ...

class ListDuplicateGroupsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "order", "library", "path_prefix", "media_type", "min_size_bytes")
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ORDER_UNSPECIFIED: _ClassVar[ListDuplicateGroupsRequest.Order]
        ORDER_COPIES: _ClassVar[ListDuplicateGroupsRequest.Order]
        ORDER_RECLAIMABLE: _ClassVar[ListDuplicateGroupsRequest.Order]
    ORDER_UNSPECIFIED: ListDuplicateGroupsRequest.Order
    ORDER_COPIES: ListDuplicateGroupsRequest.Order
    ORDER_RECLAIMABLE: ListDuplicateGroupsRequest.Order
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    PATH_PREFIX_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    MIN_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    order: ListDuplicateGroupsRequest.Order
    library: str
    path_prefix: bytes
    media_type: _asset_service_pb2.Asset.Type
    min_size_bytes: int
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., order: _Optional[_Union[ListDuplicateGroupsRequest.Order, str]] = ..., library: _Optional[str] = ..., path_prefix: _Optional[bytes] = ..., media_type: _Optional[_Union[_asset_service_pb2.Asset.Type, str]] = ..., min_size_bytes: _Optional[int] = ...) -> None: ...

class ListDuplicateGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[DuplicateGroup]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[DuplicateGroup, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListDuplicateFilesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token", "tenant")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    tenant: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class ListDuplicateFilesResponse(_message.Message):
    __slots__ = ("files", "next_page_token")
    FILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[_library_service_pb2.File]
    next_page_token: str
    def __init__(self, files: _Optional[_Iterable[_Union[_library_service_pb2.File, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class VerifyDuplicateGroupsRequest(_message.Message):
    __slots__ = ("repair",)
    REPAIR_FIELD_NUMBER: _ClassVar[int]
    repair: bool
    def __init__(self, repair: _Optional[bool] = ...) -> None: ...

class VerifyDuplicateGroupsResponse(_message.Message):
    __slots__ = ("groups", "wrong_groups", "is_repaired")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    WRONG_GROUPS_FIELD_NUMBER: _ClassVar[int]
    IS_REPAIRED_FIELD_NUMBER: _ClassVar[int]
    groups: int
    wrong_groups: int
    is_repaired: bool
    def __init__(self, groups: _Optional[int] = ..., wrong_groups: _Optional[int] = ..., is_repaired: _Optional[bool] = ...) -> None: ...
