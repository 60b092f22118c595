#!/usr/bin/env bash
# tests/page/run.sh SPEL-BINARY MODEL [SCREENSHOTS]
# Tests the live page in Chromium. Exit status 77 (skipped) where something is missing for that.
# tests/page/run.sh --fetch
# Fetches playwright-core into build/page/.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/node.sh
. "$here/../node.sh"
work=$(realpath -m "$here/../../build/page")
if [[ ${1:-} == --fetch ]]; then
  fetch_package "$work" "$here/package.json"
  exit 0
fi
(($# >= 2)) || {
  printf 'usage: %s SPEL-BINARY MODEL [SCREENSHOTS]\n' "$0" >&2
  exit 2
}
SPEL_BINARY=$(realpath "$1")
SPEL_MODEL=$(realpath "$2")
SCREENSHOTS=${3:+$(realpath -m "$3")}
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
export SPEL_BINARY SPEL_MODEL SCREENSHOTS CHROMIUM

[[ -n $CHROMIUM ]] || skip "there is no chromium here (Debian: apt-get install chromium)"
prepare_node_test "$work" "./run test-page" "$here"/package.json "$here"/*.mjs
cd "$work"
exec timeout --kill-after=10 900 node --test --test-reporter=spec page_test.mjs
