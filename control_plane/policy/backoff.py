"""How long to wait before trying again."""

from collections.abc import Callable
from dataclasses import dataclass
from random import uniform


@dataclass(frozen=True)
class Backoff:
    """Doubling delays up to a limit, spread so that many failures do not return at once."""

    base_seconds: float = 1.0
    max_seconds: float = 30.0
    jitter: float = 0.2

    def delay(self, attempt: int, random: Callable[[float, float], float] = uniform) -> float:
        """Return the seconds to wait after this many failed attempts before it (0 = first)."""
        # An exponent beyond 62 is past every limit, and would overflow.
        seconds = min(self.base_seconds * 2.0 ** min(attempt, 62), self.max_seconds)
        return seconds * (1 + random(-self.jitter, self.jitter))
