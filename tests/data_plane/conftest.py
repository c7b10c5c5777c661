"""Fixtures of the tests that need both planes."""

from collections.abc import Iterator

import pytest

from tests.support.databases import Databases
from tests.support.planes import control_loops
from tests.support.planes import desk as desk


@pytest.fixture
def loops(database: Databases) -> Iterator[None]:
    with control_loops(database):
        yield
