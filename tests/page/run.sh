#!/usr/bin/env bash
# tests/page/run.sh SPEL-BINARY MODEL [SCREENSHOTS]
# Tests the live page in Chromium. Exit status 77 (skipped) where Chromium or Node are missing.
# playwright-core is fetched once into build/page/ unless SPEL_NO_INSTALL=1.
set -euo pipefail

(($# >= 2)) || {
  printf 'usage: %s SPEL-BINARY MODEL [SCREENSHOTS]\n' "$0" >&2
  exit 2
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/node.sh
. "$here/../node.sh"
SPEL_BINARY=$(realpath "$1")
SPEL_MODEL=$(realpath "$2")
SCREENSHOTS=${3:+$(realpath -m "$3")}
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
export SPEL_BINARY SPEL_MODEL SCREENSHOTS CHROMIUM

[[ -n $CHROMIUM ]] || skip "no chromium here (Debian: apt-get install chromium)"
work=$here/../../build/page
prepare_node_test "$work" "$here"/package.json "$here"/*.mjs
cd "$work"
exec timeout --kill-after=10 900 node --test --test-reporter=spec page_test.mjs
