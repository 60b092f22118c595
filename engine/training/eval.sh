#!/bin/sh
# Figures of an exported model directory: eval.sh [--model DIR] [--scale S] [--out FILE] ...
# (see evaluate.py --help; the default is the shipped model). Fetches the text when it is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC1091  # next to this script
. "$here/env.sh"
[ -f "$here/work/data/manifest.json" ] || "$PYTHON" "$here/prepare_data.py"
exec "$PYTHON" "$here/evaluate.py" "$@"
