"""The promise on files that nobody made for a test: the Python packages of this environment."""

import os
import shutil
import sysconfig
from pathlib import Path

import pytest

from tests.support import tree
from tests.support.commands import Commands


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, because what is installed may be compiled or changed meanwhile."""
    root = tmp_path_factory.mktemp("real") / "packages"
    # Without the binaries, which are most of the bytes and hardly any of the files.
    ignored = shutil.ignore_patterns("__pycache__", "pginstall*", "*.so*", "node_modules")
    shutil.copytree(sysconfig.get_path("purelib"), root, symlinks=True, ignore=ignored)
    return root


def test_real_files_have_the_groups_of_an_independent_tool_and_of_brute_force(
    commands: Commands, packages: Path
) -> None:
    if shutil.which("jdupes") is None:
        pytest.skip("jdupes is not installed: apt-get install jdupes")
    summary = commands.json("up", packages, "--once")
    found = commands.groups({"packages": packages})
    assert found == tree.brute_force(packages)
    assert found == tree.jdupes(packages)
    assert summary["groups"] == len(found) > 10
    assert summary["files"] == sum(len(names) for _, _, names in os.walk(packages)) > 1000
