"""What a picture becomes in a confined process is what it becomes here."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Done, Limits, Order
from data_plane.decoders.pool import Pool
from mediaplane.protocol.values import MediaType
from tests.data_plane.decoders.test_pictures_formats import FORMATS
from tests.support.pictures import WEBP, corners, make, picture, profile, saved
from tests.support.raw_files import dng

OUTPUTS = (picture(320), picture(100, WEBP))
SOURCES = FORMATS | {
    "profile": lambda: saved(corners(), "JPEG", icc_profile=profile("p3")),
    "inks": lambda: saved(corners().convert("CMYK"), "JPEG"),
    "developed": lambda: dng(800, 600),
    "compressed": lambda: saved(corners(), "TIFF", compression="zstd"),
    "palette": lambda: saved(corners().quantize(8), "BMP"),
    "deep": lambda: saved(Image.new("I;16", (400, 300), 30_000), "JPEG2000"),
}
TRUNCATED = {
    "truncated": lambda: FORMATS["png"]()[:-200],
    "truncated_jxl": lambda: saved(
        Image.effect_noise((400, 300), 80).convert("RGB"), "JXL", lossless=True, effort=1
    )[:-200],
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with closing(Pool(1, DecoderSettings())) as pool:
        yield pool


@pytest.mark.parametrize("name", [*SOURCES, *TRUNCATED])
def test_a_confined_decoder_makes_the_same_of_every_format(
    pool: Pool, tmp_path: Path, name: str
) -> None:
    content = (SOURCES | TRUNCATED)[name]()
    here = make(content, *OUTPUTS, extension=name, allows_svg=True)
    order = Order(MediaType.IMAGE, OUTPUTS, Limits(allows_svg=True), extension=name)
    paths = [tmp_path / "source", tmp_path / "first", tmp_path / "second"]
    paths[0].write_bytes(content)
    fds = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
    try:
        done = pool.decode(order, fds[0], fds[1:], 60.0, lambda: None)
    finally:
        for fd in fds:
            os.close(fd)

    assert isinstance(done, Done), done
    assert done.is_degraded == here.done.is_degraded == (name in TRUNCATED)
    assert [path.read_bytes() for path in paths[1:]] == here.files
    assert pool.levels() == {"landlock+seccomp"}
