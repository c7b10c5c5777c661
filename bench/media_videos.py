"""Promise: 100 frames of a video cost far less in one pass than by a seek for each of them.

Both sides write 100 JPEG files of at most 1024 pixels. Beside the seeks, which are one command of
ffmpeg each, stands a full decode by ffmpeg that keeps frames at even distances. Compared is the
processor time of all processes, ours from the start of a decoder on, so a busy machine and the
number of threads do not matter.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.verdicts import Verdicts, row, title
from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Done, Order, Output, Product
from data_plane.decoders.pool import Pool
from mediaplane.protocol.values import HashAlgorithm, MediaType
from tools.real_media import Unavailable, files

IS_QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 1 if IS_QUICK else 3
# As long as 100 windows of two seconds, between keyframes or with one in each.
GENERATED_SECONDS = 200
GENERATED_SIZE = "640x360" if IS_QUICK else "1280x720"
FRAMES = 100
SIZE_PX = 1024
DEADLINE_SECONDS = 600.0
REAL_PACKAGE = "fillets-ng-data"
ORDER = Order(
    MediaType.VIDEO,
    [Output(Product.FRAMES, SIZE_PX)],
    hash_algorithm=HashAlgorithm.BLAKE3,
    sampling_limit=FRAMES,
)
FFMPEG = ("ffmpeg", "-v", "error", "-nostdin", "-y")
SCALE = f"scale='min({SIZE_PX},iw)':-2"


def main() -> int:
    """Measure, print and judge."""
    if shutil.which("ffmpeg") is None:
        print("Please install ffmpeg: there is nothing to compare with.", file=sys.stderr)
        return 1
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _compare("50 frames between keyframes", _generated(place, 50), place, 7.0, verdicts)
        _compare("250 frames between keyframes", _generated(place, 250), place, 3.5, verdicts)
        try:
            real = files(REAL_PACKAGE, "mpg")[0]
        except Unavailable as error:
            print(f"No real video is measured. {error}", file=sys.stderr)
        else:
            _compare("a real video", real, place, 10.0, verdicts)
    return int(bool(verdicts.missed))


def _compare(name: str, video: Path, place: Path, limit: float, verdicts: Verdicts) -> None:
    # Decoders stay for a thousand videos: their start is not what is compared.
    with closing(Pool(1, DecoderSettings())) as pool:
        _ours(pool, video, place)
        _compare_with(pool, name, video, place, limit, verdicts)


def _compare_with(
    pool: Pool, name: str, video: Path, place: Path, limit: float, verdicts: Verdicts
) -> None:
    seconds = _duration_seconds(video)
    title(f"{name}: {seconds:.0f} seconds, {video.stat().st_size / 1e6:.1f} MB")
    contenders: dict[str, Callable[[], None]] = {
        "mediaplane, and a hash": lambda: _ours(pool, video, place),
        "ffmpeg, 100 seeks": lambda: _seek(video, seconds, place),
        "ffmpeg, full decode": lambda: _decode_all(video, seconds, place),
    }
    spent: dict[str, list[float]] = {contender: [] for contender in contenders}
    for _ in range(ROUNDS):
        for contender, run in contenders.items():
            spent[contender].append(_processor_seconds(pool, run))
    ours, seeks, full = (row(contender, found, "s") for contender, found in spent.items())
    verdicts.at_least(f"{name}, beside seeks", seeks / ours, limit)
    verdicts.at_least(f"{name}, beside a full decode", full / ours, 1.0)


def _processor_seconds(pool: Pool, run: Callable[[], None]) -> float:
    """Return what a function, the decoder and all processes that it started and ended took."""
    before = _spent_seconds(pool)
    run()
    return _spent_seconds(pool) - before


def _spent_seconds(pool: Pool) -> float:
    (decoder,) = pool._decoders
    assert decoder._child is not None
    fields = Path(f"/proc/{decoder._child.process.pid}/stat").read_text().rpartition(")")[2].split()
    alive = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return alive + sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _ours(pool: Pool, video: Path, place: Path) -> None:
    fds = [os.open(video, os.O_RDONLY), os.open(place / "ours.zip", os.O_RDWR | os.O_CREAT)]
    try:
        done = pool.decode(ORDER, fds[0], fds[1:], DEADLINE_SECONDS, lambda: None)
    finally:
        for fd in fds:
            os.close(fd)
    assert isinstance(done, Done), f"{video}: {done}"
    assert len(done.frames) == FRAMES, f"{video}: {len(done.frames)} frames"
    assert done.bytes_read == video.stat().st_size, f"{video}: {done.bytes_read} bytes read"


def _seek(video: Path, seconds: float, place: Path) -> None:
    for number in range(FRAMES):
        time = f"{(number + 0.5) * seconds / FRAMES:.3f}"
        picture = ["-frames:v", "1", "-vf", SCALE, "-q:v", "4", str(place / f"{number}.jpg")]
        subprocess.run([*FFMPEG, "-ss", time, "-i", str(video), *picture], check=True)


def _decode_all(video: Path, seconds: float, place: Path) -> None:
    filters = f"fps={FRAMES / seconds:.6f},{SCALE}"
    pictures = ["-an", "-vf", filters, "-q:v", "4", str(place / "all-%03d.jpg")]
    subprocess.run([*FFMPEG, "-i", str(video), *pictures], check=True)


def _duration_seconds(video: Path) -> float:
    entry = ("-show_entries", "format=duration", "-of", "csv=p=0")
    said = subprocess.run(
        ["ffprobe", "-v", "error", *entry, str(video)], check=True, capture_output=True, text=True
    )
    return float(said.stdout)


def _generated(place: Path, gop: int) -> Path:
    video = place / f"{gop}.mp4"
    source = f"testsrc2=size={GENERATED_SIZE}:rate=25:duration={GENERATED_SECONDS}"
    codec = ("-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p")
    keys = ("-g", str(gop), "-keyint_min", str(gop), "-sc_threshold", "0")
    subprocess.run([*FFMPEG, "-f", "lavfi", "-i", source, *codec, *keys, str(video)], check=True)
    return video


if __name__ == "__main__":
    sys.exit(main())
