"""Small pictures and videos of many formats, damaged copies of them, and pictures that lie."""

import io
import struct
import zlib
from random import Random

import av
import numpy as np
import pillow_heif
import pillow_jxl  # noqa: F401 - makes itself known to Pillow
from PIL import Image

_PICTURE_PX = (96, 64)
_PICTURES = {
    "jpg": "JPEG",
    "png": "PNG",
    "webp": "WEBP",
    "gif": "GIF",
    "tif": "TIFF",
    "avif": "AVIF",
    "heic": "HEIF",
    "jxl": "JXL",
    "jp2": "JPEG2000",
    "bmp": "BMP",
    "tga": "TGA",
}
_VIDEOS = {
    "mp4": "libx264",
    "mkv": "libx264",
    "webm": "libvpx",
    "avi": "mpeg4",
    "mpg": "mpeg1video",
    "mov": "mjpeg",
}
_VIDEO_FRAMES = 20
_HEADER_BYTES = 200


def pictures() -> dict[str, bytes]:
    """One of each format, by extension."""
    pillow_heif.register_heif_opener()
    picture = Image.effect_mandelbrot(_PICTURE_PX, (-2, -1.5, 1, 1.5), 60).convert("RGB")
    made = {}
    for extension, name in _PICTURES.items():
        file = io.BytesIO()
        picture.save(file, name)
        made[extension] = file.getvalue()
    return made


def videos() -> dict[str, bytes]:
    """One of each container, by extension: two seconds with a few keyframes."""
    return {extension: _video(extension, codec) for extension, codec in _VIDEOS.items()}


def _video(extension: str, codec: str) -> bytes:
    file = io.BytesIO()
    container_format = {"mkv": "matroska", "mpg": "mpeg"}.get(extension, extension)
    with av.open(file, "w", format=container_format) as container:
        stream = container.add_stream(codec, rate=25)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = 64, 48
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.gop_size = 8
        for number in range(_VIDEO_FRAMES):
            pixels = np.full((48, 64, 3), number * 12, np.uint8)
            pixels[:, : number * 3] = (255, 0, 0)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def mutated(content: bytes, chance: Random) -> bytes:
    """Return a copy that is damaged as transfers, disks and attackers damage files."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        damage = chance.choice((_flip, _flip, _set_header, _cut, _repeat, _blank))
        data = damage(data, chance)
    return bytes(data)


def _flip(data: bytearray, chance: Random) -> bytearray:
    for _ in range(chance.randint(1, 20)):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _set_header(data: bytearray, chance: Random) -> bytearray:
    """Numbers of sizes and lengths are mostly near the beginning: make one extreme."""
    at = chance.randrange(min(len(data), _HEADER_BYTES) or 1)
    value = chance.choice((b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0"))
    data[at : at + len(value)] = value
    return data


def _cut(data: bytearray, chance: Random) -> bytearray:
    return data[: chance.randint(0, len(data))]


def _repeat(data: bytearray, chance: Random) -> bytearray:
    first, last = sorted(chance.randint(0, len(data)) for _ in range(2))
    return data[:last] + data[first:]


def _blank(data: bytearray, chance: Random) -> bytearray:
    first = chance.randint(0, len(data))
    length = min(len(data) - first, chance.randint(1, 512))
    data[first : first + length] = bytes(length)
    return data


def png_claiming(width: int, height: int) -> bytes:
    """A PNG file whose header is in order, and whose pixels are not there."""
    header = struct.pack("!IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(bytes(1000)))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + kind + body + struct.pack("!I", zlib.crc32(kind + body))


def gif_claiming(width: int, height: int) -> bytes:
    """A GIF file of one picture as large as it says."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    picture = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\2\x4c\1\0"
    return head + picture + b";"


def tiff_claiming(width: int, height: int) -> bytes:
    """A TIFF file whose only strip holds a few bytes."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1)]
    tags += [(278, height), (279, 64)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return (
        struct.pack("<2sHI", b"II", 42, 72)
        + bytes(64)
        + struct.pack("<H", len(tags))
        + entries
        + bytes(4)
    )


def svg_of(depth: int) -> bytes:
    """An SVG file in which each group shows ten times the one before."""
    groups = ['<g id="g0"><rect width="1" height="1"/></g>']
    groups += [
        f'<g id="g{level}">{f"""<use href="#g{level - 1}"/>""" * 10}</g>'
        for level in range(1, depth)
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="99" height="99"><defs>'
        f'{"".join(groups)}</defs><use href="#g{depth - 1}"/></svg>'
    ).encode()
