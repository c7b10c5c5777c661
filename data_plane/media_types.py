"""Tells pictures and videos from other files by their names."""

from mediaplane.protocol.values import MediaType

_IMAGE = (
    b"jpg jpeg jpe jfif png webp gif tif tiff avif svg heic heif hif jxl jp2 j2k bmp psd tga ppm"
    b" cr2 cr3 nef arw dng orf rw2 raf pef srw 3fr erf kdc mos mrw nrw x3f"
)
_VIDEO = (
    b"mp4 m4v mov qt mkv webm avi mpg mpeg mpe m2v ts mts m2ts ogv ogg wmv asf flv f4v 3gp 3g2"
    b" vob mxf dv"
)
_BY_EXTENSION = dict.fromkeys(_IMAGE.split(), MediaType.IMAGE) | dict.fromkeys(
    _VIDEO.split(), MediaType.VIDEO
)


def media_type(path: bytes) -> MediaType | None:
    """Return what a file claims to be; whether it is true shows when it is decoded."""
    _, dot, extension = path.rpartition(b".")
    return _BY_EXTENSION.get(extension.lower()) if dot and len(extension) <= 5 else None
