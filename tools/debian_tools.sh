#!/usr/bin/env bash
# Installs the Debian packages that tests use, where it may; elsewhere it says what to install.
# Usage: tools/debian_tools.sh [package ...]     default: the list in tools/debian-packages.txt
set -euo pipefail
cd "$(dirname "$0")"

# A line is "package command": a command that is there, from wherever, needs no package.
missing=()
if [ $# -gt 0 ]; then
  missing=("$@")
else
  while read -r package command; do
    command -v "$command" >/dev/null || missing+=("$package")
  done < <(sed 's/#.*//; /^[[:space:]]*$/d' debian-packages.txt)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then as_root=(sudo -n); fi
if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
  echo "installing ${missing[*]}"
  # Tests want the commands. A service that comes with one must not start, as Debian lets them.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    trap '"${as_root[@]}" rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin /usr/sbin/policy-rc.d
  fi
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  if log=$("${apt[@]}" update 2>&1 && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" 2>&1); then
    exit 0
  fi
  printf '%s\n' "$log" | tail -n 5 >&2
fi
# Going on is right: the tests that need a missing tool skip, and strict mode turns a skip red.
echo "Please install: apt-get install --no-install-recommends ${missing[*]}" >&2
