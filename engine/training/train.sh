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
share() { [ -z "$minutes" ] || awk "BEGIN { print \"--minutes\", $minutes * $1 }"; }
mkdir -p "$run"
[ -f "$data/manifest.json" ] || "$PYTHON" "$here/prepare_data.py" --data "$data"
# shellcheck disable=SC2046  # share prints two words or none
[ -f "$run/target.pt" ] || "$PYTHON" "$here/train.py" --config "$config" --data "$data" \
  --out "$run" $(share 0.65)
[ -f "$run/target.pt" ] || { echo "stopped; run the same command to resume" >&2; exit 1; }
[ -f "$run/rollouts.pt" ] || "$PYTHON" "$here/rollouts.py" --config "$config" --data "$data" \
  --target "$run/target.pt" --out "$run/rollouts.pt"
# shellcheck disable=SC2046
[ -f "$run/draft.pt" ] || "$PYTHON" "$here/distill.py" --config "$config" --data "$data" \
  --target "$run/target.pt" --rollouts "$run/rollouts.pt" --out "$run" $(share 0.25)
[ -f "$run/draft.pt" ] || { echo "stopped; run the same command to resume" >&2; exit 1; }
"$PYTHON" "$here/export.py" --config "$config" --target "$run/target.pt" --draft "$run/draft.pt" \
  --out "$run/model"
"$PYTHON" "$here/plot_curves.py" --run "$run" --out "$run/curves.png" || true
"$PYTHON" "$here/evaluate.py" --config "$config" --data "$data" --model "$run/model" \
  --out "$run/figures.json"
echo "model directory: $run/model"
