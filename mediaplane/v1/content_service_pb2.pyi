from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadOriginalRequest(_message.Message):
    __slots__ = ("name", "offset", "length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    offset: int
    length: int
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class ReadOriginalResponse(_message.Message):
    __slots__ = ("data", "size_bytes", "version_id")
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    VERSION_ID_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    size_bytes: int
    version_id: str
    def __init__(self, data: _Optional[bytes] = ..., size_bytes: _Optional[int] = ..., version_id: _Optional[str] = ...) -> None: ...

class ReadThumbnailRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ReadRenditionRequest(_message.Message):
    __slots__ = ("name", "rendition")
    class Rendition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RENDITION_UNSPECIFIED: _ClassVar[ReadRenditionRequest.Rendition]
        RENDITION_THUMBNAIL: _ClassVar[ReadRenditionRequest.Rendition]
        RENDITION_PROXY: _ClassVar[ReadRenditionRequest.Rendition]
        RENDITION_SPRITE: _ClassVar[ReadRenditionRequest.Rendition]
        RENDITION_SPRITE_INDEX: _ClassVar[ReadRenditionRequest.Rendition]
    RENDITION_UNSPECIFIED: ReadRenditionRequest.Rendition
    RENDITION_THUMBNAIL: ReadRenditionRequest.Rendition
    RENDITION_PROXY: ReadRenditionRequest.Rendition
    RENDITION_SPRITE: ReadRenditionRequest.Rendition
    RENDITION_SPRITE_INDEX: ReadRenditionRequest.Rendition
    NAME_FIELD_NUMBER: _ClassVar[int]
    RENDITION_FIELD_NUMBER: _ClassVar[int]
    name: str
    rendition: ReadRenditionRequest.Rendition
    def __init__(self, name: _Optional[str] = ..., rendition: _Optional[_Union[ReadRenditionRequest.Rendition, str]] = ...) -> None: ...

class ReadFrameRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ContentChunk(_message.Message):
    __slots__ = ("data", "size_bytes", "version_id", "content_type")
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    VERSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    size_bytes: int
    version_id: str
    content_type: str
    def __init__(self, data: _Optional[bytes] = ..., size_bytes: _Optional[int] = ..., version_id: _Optional[str] = ..., content_type: _Optional[str] = ...) -> None: ...
