#!/usr/bin/env bash
# tests/client/run.sh SPEL-BINARY MODEL
# Runs OpenAI's client for Node, unchanged, against the server. Exit status 77 (skipped) where Node
# or the client are missing. The client is fetched once into build/client/ unless SPEL_NO_INSTALL=1.
set -euo pipefail

(($# == 2)) || {
  printf 'usage: %s SPEL-BINARY MODEL\n' "$0" >&2
  exit 2
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/node.sh
. "$here/../node.sh"
SPEL_BINARY=$(realpath "$1")
SPEL_MODEL=$(realpath "$2")
export SPEL_BINARY SPEL_MODEL

work=$here/../../build/client
prepare_node_test "$work" "$here"/package.json "$here"/*.mjs "$here/../page/server.mjs"
cd "$work"
exec timeout --kill-after=10 600 node --test --test-reporter=spec client_test.mjs
