#!/usr/bin/env bash
# tests/page/run.sh SPEL-BINARY MODEL [SCREENSHOTS]
# Tests the live page in Chromium. Exit status 77 (skipped) where Chromium or Node are missing.
# playwright-core is fetched once into build/page/ unless SPEL_NO_INSTALL=1.
set -euo pipefail

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

(($# >= 2)) || {
  printf 'usage: %s SPEL-BINARY MODEL [SCREENSHOTS]\n' "$0" >&2
  exit 2
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/page
SPEL_BINARY=$(realpath "$1")
SPEL_MODEL=$(realpath "$2")
SCREENSHOTS=${3:+$(realpath -m "$3")}
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
export SPEL_BINARY SPEL_MODEL SCREENSHOTS CHROMIUM

[[ -n $CHROMIUM ]] || skip "no chromium here (Debian: apt-get install chromium)"
command -v node >/dev/null || skip "no node here (Debian: apt-get install nodejs npm)"

mkdir -p "$work"
cp "$here"/package.json "$here"/*.mjs "$work/"
if [[ ! -d $work/node_modules/playwright-core ]]; then
  [[ ${SPEL_NO_INSTALL:-} != 1 ]] || skip "playwright-core is not in $work and SPEL_NO_INSTALL=1"
  command -v npm >/dev/null || skip "no npm to fetch playwright-core with"
  (cd "$work" && npm install --silent --no-audit --no-fund --ignore-scripts) ||
    skip "npm could not fetch playwright-core"
fi
cd "$work"
exec timeout --kill-after=10 900 node --test --test-reporter=spec page_test.mjs
