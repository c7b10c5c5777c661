"""A schedule does what people would do by hand, on real files and with real planes."""

from pathlib import Path

from mediaplane import operation
from mediaplane.v1.schedule_service_pb2 import Schedule
from tests.support.commands import Commands
from tests.support.waiting import eventually


def test_a_rescan_finds_the_duplicates_of_all_libraries(
    sqlite_commands: Commands, tmp_path: Path
) -> None:
    commands = sqlite_commands
    with commands.planes():
        for name in ("films", "photos"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "same").write_bytes(b"the same in both")
            (folder / "own").write_bytes(name.encode())
            commands.run("library", "add", name, folder)
        commands.run("schedule", "run", "rescan")
        with commands.client() as client:
            eventually(
                lambda: (
                    operation.schedule(client, "rescan").last_outcome == Schedule.OUTCOME_COMPLETED
                )
            )
            assert [group.file_count for group in client.duplicate_groups()] == [2]
            done = [job.library for job in client.jobs()]
        shown = commands.json("schedule", "show", "rescan")["schedule"]
    # The newest first: a scan of each, and one hash of all.
    assert done == ["", "libraries/photos", "libraries/films"]
    assert (shown["last_outcome"], shown["last_error"]) == ("completed", "")
