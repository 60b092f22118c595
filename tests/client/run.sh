#!/usr/bin/env bash
# tests/client/run.sh SPEL-BINARY MODEL
# Runs OpenAI's client for Node, unchanged, against the server. Exit status 77 (skipped) where Node
# or the client are missing. The client is fetched once into build/client/ unless SPEL_NO_INSTALL=1.
set -euo pipefail

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

(($# == 2)) || {
  printf 'usage: %s SPEL-BINARY MODEL\n' "$0" >&2
  exit 2
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/client
SPEL_BINARY=$(realpath "$1")
SPEL_MODEL=$(realpath "$2")
export SPEL_BINARY SPEL_MODEL

command -v node >/dev/null || skip "no node here (Debian: apt-get install nodejs npm)"

mkdir -p "$work"
cp "$here"/package.json "$here"/*.mjs "$root/tests/page/server.mjs" "$work/"
wanted=$(node -p 'require(process.argv[1]).dependencies.openai' "$here/package.json")
found=$(node -p 'require(process.argv[1]).version' "$work/node_modules/openai/package.json" 2>/dev/null || true)
if [[ $found != "$wanted" ]]; then
  [[ ${SPEL_NO_INSTALL:-} != 1 ]] ||
    skip "openai $wanted is not in $work (./run test-client fetches it)"
  command -v npm >/dev/null || skip "no npm to fetch openai $wanted with"
  (cd "$work" && npm install --silent --no-audit --no-fund --ignore-scripts --no-package-lock) ||
    skip "npm could not fetch openai $wanted"
fi
cd "$work"
exec timeout --kill-after=10 600 node --test --test-reporter=spec client_test.mjs
