# shellcheck shell=bash
# Sourced by ./run: installs Debian and Ubuntu packages, saying which and how far it is.

say() { printf '==> %s\n' "$*" >&2; }

is_installed() {
  dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

# candidate PACKAGE: the version apt would install; nothing where it has none. A package can be known
# by name, because another one mentions it, and still have none.
candidate() {
  LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n '/^  Candidate: (none)$/d; s/^  Candidate: //p'
}

may_install() { [[ ${SPEL_NO_INSTALL:-} != 1 ]] && { ((EUID == 0)) || command -v sudo >/dev/null; }; }

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }

update_lists() {
  say "apt-get update: $1"
  as_root apt-get update -qq
}

# Reads what apt-get prints, a line for each step, and says every few seconds how far it is.
show_progress() {
  local line held='' status fetched=0 unpacked=0 set_up=0 total='?' shown=$SECONDS
  local now='' said=''
  while true; do
    status=0
    IFS= read -r -t 5 line || status=$?
    if ((status > 128)); then # Nothing came: what there is of a line is kept.
      held+=$line
    elif ((status > 0)); then
      return 0
    else
      line=$held$line held=''
      case $line in
        *' newly installed, '*)
          total=${line#*upgraded, }
          total=${total%% *}
          ;;
        'Need to get '* | 'After this operation, '*) say "  $line" ;;
        'Get:'*) fetched=$((fetched + 1)) ;;
        'Unpacking '*) unpacked=$((unpacked + 1)) ;;
        'Setting up '*) set_up=$((set_up + 1)) ;;
        'E: '* | 'Err:'* | 'dpkg: error'*) printf '%s\n' "$line" >&2 ;;
      esac
    fi
    now="  of $total packages: $fetched fetched, $unpacked unpacked, $set_up ready"
    # One large package can take long: the same again is a sign of life.
    if ((SECONDS >= shown + 20)) || { ((SECONDS >= shown + 5)) && [[ $now != "$said" ]]; }; then
      shown=$SECONDS said=$now
      say "$now"
    fi
  done
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get install -y -q \
    --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" 2>&1 | show_progress
}

# without_candidate PACKAGE...: those apt cannot install.
without_candidate() {
  local package
  for package in "$@"; do
    [[ -n $(candidate "$package") ]] || printf '%s\n' "$package"
  done
}

# install_packages PACKAGE...
install_packages() {
  if [[ ${SPEL_NO_INSTALL:-} == 1 ]]; then
    say "missing, and not installed because SPEL_NO_INSTALL=1: $*"
    return 1
  fi
  if ! may_install; then
    say "missing, and only root can install them (there is no sudo here): $*"
    say "run this as root, then the same command again:"
    say "  apt-get update && apt-get install --no-install-recommends $*"
    return 1
  fi
  if [[ -n $(without_candidate "$@") ]]; then
    update_lists "the lists here do not have all of: $*" || return 1
    local unknown
    unknown=$(without_candidate "$@")
    if [[ -n $unknown ]]; then
      say "the package archives of this system do not have: ${unknown//$'\n'/ }"
      return 1
    fi
  fi
  say "installing with apt-get: $*"
  apt_install "$@" || {
    update_lists "that failed; lists that are too old are the usual cause"
    apt_install "$@"
  }
}

# need PACKAGE[=COMMAND]...: installs those that are not there, after saying which. A package whose
# COMMAND works already is not asked for: it may have come from elsewhere, and apt would fight that.
need() {
  local missing=() wanted package
  command -v apt-get >/dev/null || {
    for wanted in "$@"; do
      [[ $wanted == *=* ]] && command -v "${wanted#*=}" >/dev/null || missing+=("${wanted%%=*}")
    done
    ((${#missing[@]} == 0)) ||
      say "there is no apt-get here; this needs what Debian has as: ${missing[*]}"
    return 0
  }
  for wanted in "$@"; do
    package=${wanted%%=*}
    [[ $wanted != *=* ]] || ! command -v "${wanted#*=}" >/dev/null || continue
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  install_packages "${missing[@]}"
}

# Boost 1.81 or newer: the unversioned package, unless that is older (Debian 12: 1.74).
boost_package() {
  local version
  version=$(candidate libboost-dev)
  if [[ -z $version ]] && may_install; then
    update_lists "the lists here are empty" >&2
    version=$(candidate libboost-dev)
  fi
  if [[ -n $version ]]; then
    dpkg --compare-versions "$version" ge 1.81 && echo libboost-dev || echo libboost1.81-dev
  else
    # No lists and none to be had: what to name to somebody who can.
    grep -q '^VERSION_ID="12"' /etc/os-release && echo libboost1.81-dev || echo libboost-dev
  fi
}

need_build_tools() {
  local boost=libboost-dev
  ! command -v apt-get >/dev/null || boost=$(boost_package)
  need cmake ninja-build g++ ccache "$boost" nlohmann-json3-dev libspdlog-dev libcli11-dev \
    prometheus-cpp-dev libsqlite3-dev libssl-dev libpcre2-dev libutf8proc-dev libgtest-dev libgmock-dev curl && return 0
  # Asked not to install: what is there may do, and CMake says what it does not find.
  [[ ${SPEL_NO_INSTALL:-} == 1 ]]
}
