import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from mediaplane.v1 import token_service_pb2 as _token_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AuditEntry(_message.Message):
    __slots__ = ("name", "call_time", "caller", "role", "tenant", "peer", "method", "resource", "code")
    class Peer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PEER_UNSPECIFIED: _ClassVar[AuditEntry.Peer]
        PEER_LOCAL: _ClassVar[AuditEntry.Peer]
        PEER_TOKEN: _ClassVar[AuditEntry.Peer]
        PEER_CERTIFICATE: _ClassVar[AuditEntry.Peer]
    PEER_UNSPECIFIED: AuditEntry.Peer
    PEER_LOCAL: AuditEntry.Peer
    PEER_TOKEN: AuditEntry.Peer
    PEER_CERTIFICATE: AuditEntry.Peer
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALL_TIME_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    call_time: _timestamp_pb2.Timestamp
    caller: str
    role: _token_service_pb2.Role
    tenant: str
    peer: AuditEntry.Peer
    method: str
    resource: str
    code: str
    def __init__(self, name: _Optional[str] = ..., call_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., caller: _Optional[str] = ..., role: _Optional[_Union[_token_service_pb2.Role, str]] = ..., tenant: _Optional[str] = ..., peer: _Optional[_Union[AuditEntry.Peer, str]] = ..., method: _Optional[str] = ..., resource: _Optional[str] = ..., code: _Optional[str] = ...) -> None: ...

class ListAuditEntriesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAuditEntriesResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
