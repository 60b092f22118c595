# shellcheck shell=bash
# Sourced by the tests that run in Node.

# Exit status 77 is how CTest knows a skipped test.
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

# ask_package PACKAGE_JSON EXPRESSION: what Node makes of the expression, `p` being the file.
ask_package() { node -p "const p = require(process.argv[1]); $2" "$1" 2>/dev/null; }

# require_node PACKAGE_JSON: skips where Node is not there or older than `engines` there asks for.
require_node() {
  local wanted
  command -v node >/dev/null || skip "there is no node here (Debian: apt-get install nodejs npm)"
  wanted=$(ask_package "$1" 'p.engines.node.replace(">=", "")')
  (($(ask_package "$1" 'process.versions.node.split(".")[0]') >= wanted)) ||
    skip "this needs Node $wanted, here is $(node --version)"
}

# wanted_package PACKAGE_JSON: name and version of the one package it names.
wanted_package() { ask_package "$1" 'Object.entries(p.dependencies)[0].join(" ")'; }

# has_package WORK NAME VERSION
has_package() {
  [[ $(ask_package "$1/node_modules/$2/package.json" 'p.version') == "$3" ]]
}

# fetch_package WORK PACKAGE_JSON: the package into WORK, if that version is not there yet.
fetch_package() {
  local work=$1 name version
  require_node "$2"
  read -r name version < <(wanted_package "$2")
  ! has_package "$work" "$name" "$version" || return 0
  [[ ${SPEL_NO_INSTALL:-} != 1 ]] || skip "$name $version is not in $work, and SPEL_NO_INSTALL=1"
  command -v npm >/dev/null || skip "there is no npm to fetch $name $version with"
  printf '==> fetching %s %s from npm into %s\n' "$name" "$version" "$work" >&2
  mkdir -p "$work"
  cp "$2" "$work/"
  (cd "$work" && npm install --loglevel=error --no-audit --no-fund --ignore-scripts --no-package-lock >&2) ||
    skip "npm could not fetch $name $version"
}

# prepare_node_test WORK COMMAND PACKAGE_JSON SOURCES...: WORK with these files in it. Skips where the
# package is not there yet; COMMAND is what fetches it.
prepare_node_test() {
  local work=$1 command=$2 name version
  shift 2
  require_node "$1"
  read -r name version < <(wanted_package "$1")
  has_package "$work" "$name" "$version" ||
    skip "npm's $name $version has not been fetched; $command does that"
  cp "$@" "$work/"
}
