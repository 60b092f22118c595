#!/usr/bin/env bash
# tests/client/run_python.sh SPEL-BINARY MODEL
# Runs OpenAI's client for Python, unchanged, against the server. Exit status 77 (skipped) where
# something is missing for that.
# tests/client/run_python.sh --fetch
# Fetches the client into build/client-python/.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$(realpath -m "$here/../../build/client-python")
wanted=$(<"$here/requirements.txt")

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

is_there() {
  [[ $("$venv/bin/python" -c 'import openai; print("openai==" + openai.__version__)' 2>/dev/null) == "$wanted" ]]
}

if [[ ${1:-} == --fetch ]]; then
  ! is_there || exit 0
  command -v python3 >/dev/null || skip "there is no python3 here (Debian: apt-get install python3-venv)"
  [[ ${SPEL_NO_INSTALL:-} != 1 ]] || skip "$wanted is not in $venv, and SPEL_NO_INSTALL=1"
  printf '==> fetching %s from PyPI into %s\n' "$wanted" "$venv" >&2
  python3 -m venv --clear "$venv" >&2 ||
    skip "python3 cannot make a venv (Debian: apt-get install python3-venv)"
  "$venv/bin/pip" --quiet --disable-pip-version-check install -r "$here/requirements.txt" >&2 ||
    skip "pip could not fetch $wanted"
  exit 0
fi
(($# == 2)) || {
  printf 'usage: %s SPEL-BINARY MODEL\n' "$0" >&2
  exit 2
}
is_there || skip "PyPI's $wanted has not been fetched; ./run test-client does that"
exec timeout --kill-after=10 600 "$venv/bin/python" "$here/client_test.py" "$1" "$2"
