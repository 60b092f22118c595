#!/usr/bin/env bash
# tests/loadtest/run.sh PYTHON SCRIPT [ARGUMENTS]
# Runs a script of the load test. Exit status 77 (skipped) where Python's aiohttp is missing.
set -euo pipefail

python=$1
shift
"$python" -c 'import aiohttp' 2>/dev/null || {
  printf 'skipped: %s has no aiohttp (Debian: apt-get install python3-aiohttp)\n' "$python"
  exit 77
}
exec "$python" "$@"
