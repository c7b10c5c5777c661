"""Two tenants with the same files, from the folders to the report."""

import json
from pathlib import Path

from tests.support.commands import Commands


def test_the_duplicates_of_a_tenant_are_found_among_its_own_files(
    commands: Commands, tmp_path: Path
) -> None:
    # Large enough that beginnings are compared first.
    contents = {"small": b"the same everywhere", "large": b"x" * 300_000}
    with commands.planes():
        for tenant, copies in (("north", 2), ("south", 1)):
            folder = tmp_path / tenant
            folder.mkdir()
            for name, content in contents.items():
                for number in range(copies):
                    (folder / f"{name} {number}").write_bytes(content)
            commands.run("library", "add", tenant, folder, "--tenant", tenant)
        commands.run("up", "--once", "--no-media")
        exported = json.loads(commands.run("duplicates", "export", "--format", "json").stdout)
    found = [[file["absolute_path"] for file in group["files"]] for group in exported["groups"]]
    assert sorted(found) == [
        [str(tmp_path / "north" / f"{name} {number}") for number in range(2)]
        for name in sorted(contents)
    ]
    assert {group["tenant"] for group in exported["groups"]} == {"north"}
