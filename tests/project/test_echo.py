"""The echo that benchmarks compare calls with answers as the planes do."""

from bench.echo import running_echo
from mediaplane.v1.thumbnail_service_pb2 import Thumbnail


def test_an_echo_comes_back_as_it_was_sent() -> None:
    sent = Thumbnail(name="thumbnails/1")
    with running_echo() as echoes:
        assert echoes(sent)() == sent
