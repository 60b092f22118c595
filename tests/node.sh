# shellcheck shell=bash
# Sourced by the tests that run in Node.

# Exit status 77 is how CTest knows a skipped test.
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

# prepare_node_test WORK SOURCES...: WORK with these files in it and the one package that its
# package.json names, fetched if that version is not there yet. Skips where Node, npm or the package
# cannot be had; SPEL_NO_INSTALL=1 never fetches.
prepare_node_test() {
  local work=$1 package wanted found
  shift
  command -v node >/dev/null || skip "no node here (Debian: apt-get install nodejs npm)"
  mkdir -p "$work"
  cp "$@" "$work/"
  read -r package wanted < <(node -p \
    'Object.entries(require(process.argv[1]).dependencies)[0].join(" ")' "$work/package.json")
  found=$(node -p 'require(process.argv[1]).version' "$work/node_modules/$package/package.json" \
    2>/dev/null || true)
  [[ $found != "$wanted" ]] || return 0
  [[ ${SPEL_NO_INSTALL:-} != 1 ]] || skip "$package $wanted is not in $work and SPEL_NO_INSTALL=1"
  command -v npm >/dev/null || skip "no npm to fetch $package $wanted with"
  (cd "$work" && npm install --silent --no-audit --no-fund --ignore-scripts --no-package-lock) ||
    skip "npm could not fetch $package $wanted"
}
