#!/usr/bin/env bash
# tests/client/run.sh SPEL-BINARY MODEL
# Runs OpenAI's client for Node, unchanged, against the server. Exit status 77 (skipped) where
# something is missing for that.
# tests/client/run.sh --fetch
# Fetches the client into build/client/.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/node.sh
. "$here/../node.sh"
work=$(realpath -m "$here/../../build/client")
if [[ ${1:-} == --fetch ]]; then
  fetch_package "$work" "$here/package.json"
  exit 0
fi
(($# == 2)) || {
  printf 'usage: %s SPEL-BINARY MODEL\n' "$0" >&2
  exit 2
}
SPEL_BINARY=$(realpath "$1")
SPEL_MODEL=$(realpath "$2")
export SPEL_BINARY SPEL_MODEL

prepare_node_test "$work" "./run test-client" "$here"/package.json "$here"/*.mjs \
  "$here/../page/server.mjs"
cd "$work"
exec timeout --kill-after=10 600 node --test --test-reporter=spec client_test.mjs
