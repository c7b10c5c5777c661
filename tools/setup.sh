#!/usr/bin/env bash
# Leaves .venv with the pinned packages of one requirements file and the `mediaplane` command.
# Usage: tools/setup.sh requirements.txt | requirements-dev.txt
# MEDIAPLANE_SETUP_PIP=1 keeps to pip even where uv is at hand; PYTHON names the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
requirements=$1
venv=.venv
export UV_PYTHON_DOWNLOADS=never PIP_DISABLE_PIP_VERSION_CHECK=1
[ "$(id -u)" != 0 ] || export PIP_ROOT_USER_ACTION=ignore

uv_on_path() { [ -z "${MEDIAPLANE_SETUP_PIP:-}" ] && command -v uv; }
say() { printf '%s\n' "$*" >&2; }

# The first interpreter that really runs and is new enough: a version manager's shim may do neither.
find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  say "Python 3.11 or newer is needed and was not found. On Debian 12: apt-get install python3 python3-venv"
  return 1
}

create_venv() {
  local python=$1 error
  rm -rf "$venv"
  if uv_on_path >/dev/null; then
    uv venv --quiet --python "$python" "$venv"
    return
  fi
  if error=$("$python" -m venv "$venv" 2>&1); then
    return
  fi
  rm -rf "$venv"
  # Debian ships venv without ensurepip; nothing but its own package brings it.
  if "$python" -c 'import ensurepip' 2>/dev/null || ! tools/debian_tools.sh python3-venv; then
    say "$error"
    say "Could not create $venv. On Debian: apt-get install python3-venv"
    return 1
  fi
  "$python" -m venv "$venv" || { say "Install python3-venv, then run make setup again."; return 1; }
}

# One requirement with its hashes, out of the file that pins it.
pinned() { awk -v start="$1==" 'index($0, start) == 1 {p = 1} p {print; if (!/\\$/) exit}' requirements-dev.txt; }

# uv is about four times faster than pip, so even fetching it first pays off; without it pip does.
find_uv() {
  if [ -n "${MEDIAPLANE_SETUP_PIP:-}" ]; then return 1; fi
  if uv_on_path; then return; fi
  if [ ! -x "$venv/bin/uv" ]; then
    pinned uv >"$venv/uv.txt"
    "$venv/bin/python" -m pip install --quiet --require-hashes --no-deps -r "$venv/uv.txt" >&2 || return 1
  fi
  echo "$venv/bin/uv"
}

# An environment that uv made has no pip: it is of no use once uv is gone.
is_usable() {
  "$venv/bin/python" -c '' 2>/dev/null || return 1
  "$venv/bin/python" -c 'import pip' 2>/dev/null || find_uv >/dev/null 2>&1
}

if ! is_usable; then
  python=$(find_python)
  create_venv "$python"
fi

if uv=$(find_uv); then
  # Compiled once here: where PYTHONDONTWRITEBYTECODE is set, every start would do it again.
  install=("$uv" pip install --quiet --compile-bytecode --python "$venv/bin/python")
else
  say "Installing with pip; with uv it would be quicker."
  install=("$venv/bin/python" -m pip install --quiet)
fi
"${install[@]}" --require-hashes -r "$requirements"
"${install[@]}" --no-deps --no-build-isolation --editable .
"$venv/bin/python" -m compileall -q mediaplane control_plane data_plane migrations
