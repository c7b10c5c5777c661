"""Writes mediaplane/v1 from proto/; with --check, only tells whether it is up to date."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "mediaplane/v1"
# protoc writes no types for the service classes; this plugin of mypy-protobuf does.
TYPES_PLUGIN = Path(sys.executable).parent / "protoc-gen-mypy_grpc"


def generate(out: Path) -> None:
    """Write the Python modules and their type stubs below `out`."""
    sources = sorted((ROOT / "proto" / PACKAGE).glob("*.proto"))
    if not TYPES_PLUGIN.exists():
        sys.exit(f"{TYPES_PLUGIN} is missing: install mypy-protobuf beside {sys.executable}")
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{ROOT / 'proto'}",
        f"--plugin=protoc-gen-mypy_grpc={TYPES_PLUGIN}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_grpc_out=quiet,only_sync:{out}",
        *map(str, sources),
    ]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit("protoc failed: see its message above")


def wanted() -> dict[str, bytes]:
    """Return what proto/ generates: content by file name."""
    with tempfile.TemporaryDirectory() as directory:
        generate(Path(directory))
        return read(Path(directory))


def read(out: Path) -> dict[str, bytes]:
    """Return the generated files below `out`: content by file name."""
    return {path.name: path.read_bytes() for path in (out / PACKAGE).glob("*_pb2*.py*")}


def check() -> None:
    """Exit with one line per checked-in file that is not what proto/ generates."""
    new, old = wanted(), read(ROOT)
    lines = [f"{PACKAGE}/{name} is missing" for name in sorted(new.keys() - old.keys())]
    lines += [f"{PACKAGE}/{name} has no .proto file" for name in sorted(old.keys() - new.keys())]
    lines += [
        f"{PACKAGE}/{name} differs from what proto/ generates"
        for name in sorted(new.keys() & old.keys())
        if new[name] != old[name]
    ]
    if lines:
        sys.exit("\n".join([*lines, "Run `python tools/generate_proto.py` and check it in."]))


def write() -> None:
    """Make the checked-in files what proto/ generates, and remove leftovers."""
    new = wanted()
    for name in read(ROOT).keys() - new.keys():
        (ROOT / PACKAGE / name).unlink()
    for name, content in new.items():
        (ROOT / PACKAGE / name).write_bytes(content)


def main(arguments: list[str]) -> None:
    """Run the command line."""
    if arguments == ["--check"]:
        check()
    elif not arguments:
        write()
    else:
        sys.exit("usage: python tools/generate_proto.py [--check]")


if __name__ == "__main__":
    main(sys.argv[1:])
