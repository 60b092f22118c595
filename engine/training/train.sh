#!/bin/sh
# Trains a model from nothing to an exported, evaluated directory:
#
#   engine/training/train.sh [--minutes N] [--config FILE] [--work DIR]
#
# Every stage resumes where it was stopped. Without --minutes the token budgets of the configuration
# hold. Needs python3 with torch and numpy (Debian: python3-torch python3-numpy
# python3-matplotlib), g++, and for the text apt-get, npm and dpkg.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
minutes='' config=$here/configs/spel-21m.json work=$here/work
while [ $# -gt 0 ]; do
  case $1 in
    --minutes) minutes=$2; shift 2 ;;
    --config) config=$2; shift 2 ;;
    --work) work=$2; shift 2 ;;
    *) echo "usage: train.sh [--minutes N] [--config FILE] [--work DIR]" >&2; exit 2 ;;
  esac
done
# shellcheck disable=SC1091  # next to this script
. "$here/env.sh"
name=$(basename "$config" .json)
run=$work/$name data=$work/data
say() { echo "==> $*" >&2; }
share() { [ -z "$minutes" ] || awk "BEGIN { print \"--minutes\", $minutes * $1 }"; }
# The text at once and the figures take minutes of their own: a short run has less of the one and none
# of the other.
rows=256 figures=yes
if [ -n "$minutes" ] && awk "BEGIN { exit !($minutes < 60) }"; then
  rows=32 figures=
fi
say "plan: texts, target (65 % of the time), text by the target (10 %), draft (25 %), then export;"
say "${minutes:+about $minutes minutes, }everything in $run; the same command goes on where it stopped"
mkdir -p "$run"
[ -f "$data/manifest.json" ] || "$PYTHON" "$here/prepare_data.py" --data "$data"
say "1 of 4: the target"
# shellcheck disable=SC2046  # share prints two words or none
[ -f "$run/target.pt" ] || "$PYTHON" "$here/train.py" --config "$config" --data "$data" \
  --out "$run" $(share 0.65)
[ -f "$run/target.pt" ] || { echo "stopped; run the same command to resume" >&2; exit 1; }
say "2 of 4: text by the target"
# shellcheck disable=SC2046
[ -f "$run/rollouts.pt" ] || "$PYTHON" "$here/rollouts.py" --config "$config" --data "$data" \
  --target "$run/target.pt" --out "$run/rollouts.pt" --rows "$rows" $(share 0.1)
say "3 of 4: the draft"
# shellcheck disable=SC2046
[ -f "$run/draft.pt" ] || "$PYTHON" "$here/distill.py" --config "$config" --data "$data" \
  --target "$run/target.pt" --rollouts "$run/rollouts.pt" --out "$run" $(share 0.25)
[ -f "$run/draft.pt" ] || { echo "stopped; run the same command to resume" >&2; exit 1; }
say "4 of 4: export${figures:+ and figures}"
"$PYTHON" "$here/export.py" --config "$config" --target "$run/target.pt" --draft "$run/draft.pt" \
  --out "$run/model"
"$PYTHON" "$here/plot_curves.py" --run "$run" --out "$run/curves.png" || true
if [ -n "$figures" ]; then
  "$PYTHON" "$here/evaluate.py" --config "$config" --data "$data" --model "$run/model" \
    --out "$run/figures.json"
else
  say "its figures, some minutes: ./run eval-model --config $config --data $data \\
    --model $run/model --scale 0.1"
fi
say "model directory: $run/model (./run serve --model $run/model)"
