#!/usr/bin/env bash
# kill_test.sh WRITER KILLS: kills the writer at random moments; no acknowledged note may be lost.
set -euo pipefail
readonly writer=$1 kills=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
readonly acknowledged=$directory/acknowledged

: >"$acknowledged"
for ((i = 1; i <= kills; ++i)); do
  "$writer" write "$directory/bank" "$acknowledged" &
  pid=$!
  # 0 to 63 ms: from before the store is open to many writes later.
  sleep "0.0$(printf '%02d' $((RANDOM % 64)))"
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  if ((i % 20 == 0 || i == kills)); then
    "$writer" check "$directory/bank" "$acknowledged" || {
      echo "after $i kills: an acknowledged note is lost or wrong" >&2
      exit 1
    }
  fi
done
echo "$kills kills, $(wc -l <"$acknowledged") notes acknowledged, none lost"
