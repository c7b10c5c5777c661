"""Promise: pictures are made by isolated decoders as fast as by sharp, and two make twice as many.

Each file becomes a proxy (1024 px, JPEG) and a thumbnail (320 px, WebP) from one decode, as files,
by decoders in processes of their own and by sharp, a library for Node.js on the same libvips.
Both have started before the clock does, and take turns.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyvips

from bench.verdicts import Verdicts, row, title
from data_plane.decoders.decoder import DecoderSettings
from data_plane.decoders.messages import Done, Order, Output, Product
from data_plane.decoders.pool import Pool
from mediaplane.protocol.values import MediaType, ThumbnailFormat
from tools.real_media import Unavailable, files

IS_QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 3 if IS_QUICK else 7
GENERATED_FILES = 6 if IS_QUICK else 16
REAL_FILES = 8 if IS_QUICK else 24
REAL_PACKAGES = ("plasma-workspace-wallpapers", "mate-backgrounds", "kphotoalbum")
# Photos, not icons.
MIN_REAL_PIXELS = 3_000_000
SHARP = Path(__file__).parent / "node" / "pictures.js"
ORDER = Order(
    MediaType.IMAGE,
    [
        Output(Product.PICTURE, 1024, ThumbnailFormat.JPEG),
        Output(Product.PICTURE, 320, ThumbnailFormat.WEBP),
    ],
)
DEADLINE_SECONDS = 120.0

Round = Callable[[], float]


def main() -> int:
    """Measure, print and judge."""
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory() as place:
        for name, sources in _corpora(Path(place)).items():
            # Large ones first, lest one lane ends with a file that leaves the other idle.
            sources.sort(key=_pixels, reverse=True)
            megapixels = sum(map(_pixels, sources)) / 1e6
            title(f"{name}: {len(sources)} JPEG files, {megapixels:.0f} megapixels in all")
            _compare(name, sources, Path(place), verdicts)
    return int(bool(verdicts.missed))


def _compare(name: str, sources: Sequence[Path], place: Path, verdicts: Verdicts) -> None:
    rates: dict[tuple[str, int], list[float]] = {}
    with ExitStack() as started:
        rounds: dict[tuple[str, int], Round] = {}
        for lanes in (1, 2):
            rounds["mediaplane", lanes] = started.enter_context(_ours(lanes, sources, place))
            rounds["sharp", lanes] = started.enter_context(_sharp(lanes, sources, place))
        for contender, run in rounds.items():
            run()  # starts processes, and fills the cache of pages
            rates[contender] = []
        for _ in range(ROUNDS):
            for contender, run in rounds.items():
                rates[contender].append(len(sources) / run())
    for (who, lanes), found in rates.items():
        row(f"{who}, {lanes} at a time", found, "files/s")
    for lanes in (1, 2):
        ratio = _median_ratio(rates["mediaplane", lanes], rates["sharp", lanes])
        verdicts.at_least(f"{name}, {lanes} at a time, beside sharp", ratio, 0.95)
    ratio = _median_ratio(rates["mediaplane", 2], rates["mediaplane", 1])
    verdicts.at_least(f"{name}, two decoders beside one", ratio, 1.8)


def _median_ratio(ours: Sequence[float], others: Sequence[float]) -> float:
    return float(np.median([a / b for a, b in zip(ours, others, strict=True)]))


@contextmanager
def _ours(decoders: int, sources: Sequence[Path], place: Path) -> Iterator[Round]:
    with (
        closing(Pool(decoders, DecoderSettings())) as pool,
        ThreadPoolExecutor(decoders) as threads,
    ):

        def run() -> float:
            began = time.perf_counter()
            for _ in threads.map(partial(_make, pool, place), sources, range(len(sources))):
                pass
            return time.perf_counter() - began

        yield run


def _make(pool: Pool, place: Path, source: Path, number: int) -> None:
    paths = [place / f"ours-{number}.{output.format}" for output in ORDER.outputs]
    fds = [os.open(source, os.O_RDONLY)]
    try:
        fds += [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
        done = pool.decode(ORDER, fds[0], fds[1:], DEADLINE_SECONDS, lambda: None)
    finally:
        for fd in fds:
            os.close(fd)
    assert isinstance(done, Done), f"{source}: {done}"


@contextmanager
def _sharp(lanes: int, sources: Sequence[Path], place: Path) -> Iterator[Round]:
    command = ["node", str(SHARP), str(lanes), str(place), *map(str, sources)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        asked, said = process.stdin, process.stdout
        assert asked is not None
        assert said is not None

        def run() -> float:
            asked.write("again\n")
            asked.flush()
            return float(said.readline())

        try:
            yield run
        finally:
            asked.close()


def _corpora(place: Path) -> dict[str, list[Path]]:
    corpora = {"generated photos": [_photo(place, number) for number in range(GENERATED_FILES)]}
    try:
        real = [path for package in REAL_PACKAGES for path in files(package, "jpg", "jpeg")]
    except Unavailable as error:
        print(f"Only generated photos are measured. {error}", file=sys.stderr)
    else:
        large = [path for path in real if _pixels(path) >= MIN_REAL_PIXELS]
        corpora["real photos"] = large[:: max(1, len(large) // REAL_FILES)][:REAL_FILES]
    return corpora


def _pixels(path: Path) -> int:
    header = pyvips.Image.jpegload(str(path))
    return int(header.width * header.height)


def _photo(place: Path, number: int) -> Path:
    """Write a JPEG of 8 to 12 megapixels with large shapes, fine detail and a sensor's noise."""
    # Those of a size follow each other: two lanes that take turns come to an end together.
    width = 3264 + number // 4 % 4 * 256
    height = width * 3 // 4
    layers = [
        pyvips.Image.perlin(width, height, cell_size=cell, seed=number * 10 + cell) * weight
        for cell, weight in ((600, 60), (90, 25), (15, 8))
    ]
    light = pyvips.Image.sum(layers) + 128
    noise = [
        pyvips.Image.gaussnoise(width, height, sigma=4, mean=0, seed=number * 3 + band)
        for band in range(3)
    ]
    colours = [light * share + one for share, one in zip((1.0, 0.9, 0.7), noise, strict=True)]
    photo = colours[0].bandjoin(colours[1:]).cast("uchar").copy(interpretation="srgb")
    path = place / f"photo-{number}.jpeg"
    photo.jpegsave(str(path), Q=90)
    return path


if __name__ == "__main__":
    sys.exit(main())
