#!/usr/bin/env bash
# Each alert of docker/prometheus fires when it should and not before. Exit status 77 (skipped)
# without promtool.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../docker/prometheus"
command -v promtool >/dev/null || {
  printf 'skipped: no promtool here (Debian: apt-get install prometheus)\n'
  exit 77
}
promtool check rules rules/*.yml
promtool test rules rules_test.yml
