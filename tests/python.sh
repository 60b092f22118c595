#!/usr/bin/env bash
# tests/python.sh MODULE ARGUMENTS...: runs Python with these arguments. MODULE is what Python must be
# able to import; exit status 77 (skipped) where no interpreter can. "-" asks for nothing.
set -euo pipefail

module=$1
shift
# Debian's interpreter first: the one its packages are for.
for python in /usr/bin/python3 "$(command -v python3 || true)"; do
  [[ -x $python ]] || continue
  [[ $module != - ]] || exec "$python" "$@"
  ! "$python" -c "import $module" 2>/dev/null || exec "$python" "$@"
done
if [[ -x ${python:-} ]]; then
  printf 'skipped: %s has no %s (Debian: apt-get install python3-%s)\n' "$python" "$module" "$module"
else
  printf 'skipped: there is no python3 here (Debian: apt-get install python3 python3-aiohttp)\n'
fi
exit 77
