"""What a process without privileges can do, also when the tests run as root."""

import os
import pickle
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

NOBODY = 65534
IS_ROOT = os.geteuid() == 0

Answer = TypeVar("Answer")


def as_nobody(action: Callable[[], Answer]) -> Answer:
    """Return what `action` returns in a child without privileges, or here if we have none."""
    if not IS_ROOT:
        return action()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(writer, action)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        told = answers.read()
    os.waitpid(child, 0)
    failure, answer = pickle.loads(told)
    assert not failure, failure
    return answer  # type: ignore[no-any-return]


def _answer(writer: int, action: Callable[[], object]) -> None:
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        told = pickle.dumps((None, action()))
    except BaseException:  # noqa: BLE001 - the parent raises it again
        told = pickle.dumps((traceback.format_exc(), None))
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(told)
    os._exit(0)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that everybody can reach, unlike those that pytest makes."""
    folder = Path(tempfile.mkdtemp(prefix="mediaplane-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for parent, folders, _ in os.walk(folder):
            for name in folders:
                os.chmod(os.path.join(parent, name), 0o700, follow_symlinks=True)
        shutil.rmtree(folder)
