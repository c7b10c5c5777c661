"""What README and CONTRIBUTING tell people to type exists and is accepted."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from mediaplane.cli.app import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MANUAL = (ROOT / "docs" / "OPERATIONS.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()

TYPED = "\n".join(re.findall(r"^```\n(.*?)^```", README + MANUAL, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^(?:\.venv/bin/)?mediaplane (.+?) *(?:#.*|&.*)?$", TYPED, re.MULTILINE)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
TARGETS = re.findall(r"^make (\w+)", README + CONTRIBUTING, re.MULTILINE)


def test_the_documents_have_commands_to_check() -> None:
    assert len(COMMANDS) >= 12
    assert {"run", "test", "setup", "check"} <= set(TARGETS)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_in_the_documents_is_accepted(line: str) -> None:
    words = shlex.split(line)
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"there is no command {line!r}"
        command = command.commands[words.pop(0)]
    command.make_context("mediaplane", words)


@pytest.mark.parametrize("target", TARGETS)
def test_a_make_target_in_the_documents_exists(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize(
    "document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=lambda p: p.name
)
def test_a_link_to_a_file_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
