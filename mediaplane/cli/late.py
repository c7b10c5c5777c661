"""Loads some modules when they are used for the first time, not when they are imported."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

# What libraries import for all cases and no command uses: a third of a short command's time.
_LATE = frozenset({"asyncio", "grpc.aio", "google.protobuf.internal.python_message"})


class _LateFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a late module; None leaves any other to the usual finders."""
        found = PathFinder.find_spec(fullname, path, target) if fullname in _LATE else None
        if found and found.loader:
            found.loader = LazyLoader(found.loader)
        return found


def load_late() -> None:
    """Have modules that most commands do without wait until somebody uses them.

    Two threads must not be the first to use one at once, so this is for commands, not for planes.
    """
    sys.meta_path.insert(0, _LateFinder())
