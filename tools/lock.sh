#!/usr/bin/env bash
# Pins every dependency, the transitive ones too, with the hashes of all its files for all platforms.
# Usage: tools/lock.sh [--upgrade]     without --upgrade, pins that still fit stay as they are
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$(command -v .venv/bin/uv uv | head -n 1) || { echo "uv is needed: make setup" >&2; exit 1; }

lock() {
  local group=$1 output=$2 new
  shift 2
  new=$(mktemp)
  if [ -e "$output" ]; then cp "$output" "$new"; fi
  # The tool's own header would name paths of this machine.
  "$uv" pip compile pyproject.toml --group "$group" --quiet --universal --python-version 3.11 \
    --generate-hashes --no-annotate --no-header \
    --output-file "$new" "$@"
  { echo "# Written by make lock; do not edit."; grep -v '^#' "$new"; } >"$output"
  rm "$new"
}

lock build requirements.txt "$@"
# The dev set repeats the runtime pins, so that installing it never moves one.
lock dev requirements-dev.txt --constraint requirements.txt "$@"
