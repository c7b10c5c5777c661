"""Videos written by FFmpeg's own commands, and what those say of the frames in them."""

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

needs_ffmpeg = pytest.mark.skipif(
    not shutil.which("ffmpeg") or not shutil.which("ffprobe"), reason="ffmpeg is not installed"
)


def write_clip(path: Path, *options: str, seconds: float = 4) -> Path:
    """Write a video whose pictures all differ, 25 of them a second."""
    source = f"testsrc2=size=160x90:rate=25:duration={seconds}"
    command = ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", source, *options]
    subprocess.run([*command, "-threads", "1", path], check=True)
    return path


def shown_at_ms(path: Path) -> list[int]:
    """Return when each frame is shown, in whole milliseconds, as ffprobe tells."""
    found = _probe(path, "frames", "stream=time_base:frame=pts,best_effort_timestamp")
    base = Fraction(found["streams"][0]["time_base"])
    frames = found["frames"]
    if any("pts" in frame for frame in frames):
        # Of the last ones it may tell none: those come at the same pace.
        times = [frame.get("best_effort_timestamp") for frame in frames]
        for place in (place for place, time in enumerate(times) if time is None):
            times[place] = 2 * times[place - 1] - times[place - 2]
    else:
        # The container tells only when packets are decoded; no picture is shown at another time.
        times = sorted(one["dts"] for one in _probe(path, "packets", "packet=dts")["packets"])
    return [round(time * base * 1000) for time in times]


def _probe(path: Path, section: str, entries: str) -> dict[str, Any]:
    command = ["ffprobe", "-v", "quiet", "-select_streams", "v:0", f"-show_{section}"]
    # Of a video that was cut off it tells what it can, and ends with an error.
    shown = subprocess.run(
        [*command, "-show_entries", entries, "-of", "json", path],
        check=False,
        stdout=subprocess.PIPE,
    )
    found: dict[str, Any] = json.loads(shown.stdout)
    return found
