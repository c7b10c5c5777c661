"""The one check: runs every step, prints a line for each, and fails when any of them failed."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
# One more than there are processors: a third of the time of the tests is spent waiting.
PYTEST_WORKERS = str((os.cpu_count() or 1) + 1)


class Step(NamedTuple):
    name: str
    command: list[str]
    directory: Path = ROOT


def steps(pytest_arguments: list[str]) -> list[Step]:
    """Cheap steps first; the tests, whose output is shown as it comes, last."""
    python = sys.executable
    return [
        Step("ruff check", [f"{BIN}/ruff", "check", "--quiet"]),
        Step("ruff format", [f"{BIN}/ruff", "format", "--check", "--quiet"]),
        Step("import contracts", [f"{BIN}/lint-imports"]),
        Step("buf lint", [f"{BIN}/buf", "lint"], ROOT / "proto"),
        Step("generated code is current", [python, "tools/generate_proto.py", "--check"]),
        Step("generated docs are current", [python, "-m", "mediaplane.protocol.docs", "--check"]),
        Step("mypy --strict", [f"{BIN}/mypy", "--no-error-summary"]),
        Step("pytest", [python, "-m", "pytest", "-n", PYTEST_WORKERS, *pytest_arguments]),
    ]


def run(step: Step) -> bool:
    """Runs one step; its output is worth reading only when it failed, except that of the tests."""
    is_shown = step.name == "pytest"
    # The tools of this environment come first on PATH, whether or not it is activated.
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    started = time.monotonic()
    result = subprocess.run(
        step.command,
        cwd=step.directory,
        env=environment,
        stdout=None if is_shown else subprocess.PIPE,
        stderr=None if is_shown else subprocess.STDOUT,
        text=True,
        check=False,
    )
    passed = result.returncode == 0
    seconds = time.monotonic() - started
    print(f"{'ok  ' if passed else 'FAIL'} {step.name:<28}{seconds:6.1f} s", flush=True)
    if not passed and result.stdout:
        print(result.stdout.rstrip(), flush=True)
    return passed


def main() -> int:
    started = time.monotonic()
    failed = [step.name for step in steps(sys.argv[1:]) if not run(step)]
    seconds = time.monotonic() - started
    if failed:
        print(f"check failed after {seconds:.1f} s: {', '.join(failed)}")
        return 1
    print(f"check passed in {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
