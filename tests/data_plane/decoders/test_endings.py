"""Whether a video was cut off is told by its container, wherever that tells."""

from fractions import Fraction
from pathlib import Path

import av

from tests.support.videos import RATE, make, scene


def test_what_looks_like_a_page_within_a_page_does_not_make_an_ogg_file_look_cut_off(
    tmp_path: Path,
) -> None:
    path = tmp_path / "video.ogv"
    with av.open(str(path), "w", format="ogg") as file:
        video = file.add_stream("libvpx", rate=RATE)
        sound = file.add_stream("libopus", rate=48_000)
        assert isinstance(video, av.VideoStream)
        video.width, video.height, video.pix_fmt = 160, 90, "yuv420p"
        for number in range(RATE):
            picture = scene(number)
            picture.pts, picture.time_base = number, Fraction(1, RATE)
            file.mux(video.encode(picture))
        file.mux(video.encode(None))
        packet = av.Packet(b"\xfcOggS" + bytes(50))
        packet.stream, packet.time_base = sound, Fraction(1, 48_000)
        packet.pts = packet.dts = 48_000
        file.mux(packet)
    assert path.read_bytes().rfind(b"\xfcOggS") > path.stat().st_size - 100

    assert not make(path).done.is_degraded
