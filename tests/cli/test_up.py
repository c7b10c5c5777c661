"""What `mediaplane up` refuses before it starts anything."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mediaplane.cli.app import app


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--watch", "--once"], "give one of them"),
        (["--watch-interval", "5"], "it is for --watch"),
        (["--watch", "--watch-interval", "0"], "--watch-interval"),
        (["--watch", "--server", "elsewhere:1"], "elsewhere:1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_watching_where_it_cannot_be_is_a_usage_error(
    tmp_path: Path, words: list[str], said: str
) -> None:
    state = tmp_path / "state"
    result = CliRunner().invoke(app, ["up", str(tmp_path), *words, "--state", str(state)])
    assert result.exit_code == 2
    assert said in result.stderr
    assert not state.exists()
