#!/usr/bin/env bash
# kill_test.sh WRITER KILLS: kills the writer at random moments; no acknowledged note may be lost.
set -euo pipefail
readonly writer=$1 kills=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
readonly acknowledged=$directory/acknowledged
# A new store now and then: a check reads every note, and ten thousand kills leave millions.
readonly kills_per_store=500
notes=0

: >"$acknowledged"
for ((i = 1; i <= kills; ++i)); do
  "$writer" write "$directory/bank" "$acknowledged" &
  pid=$!
  # Every fourth kill may come before the store is open; the others wait for a first promise.
  before=$(stat -c %s "$acknowledged")
  if ((i % 4)); then
    until (($(stat -c %s "$acknowledged") > before)) || ! kill -0 "$pid" 2>/dev/null; do
      sleep 0.005
    done
  fi
  sleep "0.0$(printf '%02d' $((RANDOM % 64)))"
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  if ((i % 20 == 0 || i == kills)); then
    "$writer" check "$directory/bank" "$acknowledged" || {
      echo "after $i kills: an acknowledged note is lost or wrong" >&2
      exit 1
    }
  fi
  if ((i % kills_per_store == 0 || i == kills)); then
    ((notes += $(wc -l <"$acknowledged")))
    rm -rf "$directory/bank"
    : >"$acknowledged"
  fi
done
echo "$kills kills, $notes notes acknowledged, none lost"
