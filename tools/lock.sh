#!/usr/bin/env bash
# Pins every dependency, the transitive ones too, with the hashes of all its files for all platforms.
# Usage: tools/lock.sh [--upgrade]     without --upgrade, pins that still fit stay as they are
set -euo pipefail
cd "$(dirname "$0")/.."
uv=$(command -v .venv/bin/uv uv | head -n 1) || { echo "uv is needed: make setup" >&2; exit 1; }

lock() {
  local output=$1 new
  shift
  new=$(mktemp)
  if [ -e "$output" ]; then cp "$output" "$new"; fi
  # The tool's own header would name paths of this machine.
  "$uv" pip compile --quiet --universal --python-version 3.11 \
    --generate-hashes --no-annotate --no-header \
    --output-file "$new" "$@"
  { echo "# Written by make lock; do not edit."; grep -v '^#' "$new"; } >"$output"
  rm "$new"
}

lock requirements.txt pyproject.toml --group build "$@"
# The dev set repeats the runtime pins, so that installing it never moves one.
lock requirements-dev.txt pyproject.toml --group dev --constraint requirements.txt "$@"
# Only the peers: what they need must not meet what we need.
lock requirements-bench.txt --group bench "$@"
# Apart for the same reason.
lock requirements-deploy.txt --group deploy "$@"
