#!/usr/bin/env bash
# docker/build-with-buildah.sh [WORK]
# Builds the Dockerfile where no Docker engine runs: Debian's buildah over bases debootstrap makes.
# Needs root, and the packages buildah and debootstrap. Leaves the image "spel" in buildah's storage
# under WORK (default build/image), checks it by running its binary, and prints its size. With
# CCACHE_DIR set, the compiler's cache there is used.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(realpath -m "${1:-$root/build/image}")
mirror=${DEBIAN_MIRROR:-}  # Empty: debootstrap's own default.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
mkdir -p "$work"
storage=(--root "$work/storage" --runroot "$work/run")
jobs=${JOBS:-2}

if ! buildah "${storage[@]}" inspect --type image localhost/bookworm >/dev/null 2>&1; then
  echo "==> base image with debootstrap"
  rm -rf "$work/rootfs"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$work/rootfs" ${mirror:+"$mirror"} >"$work/debootstrap.log"
  rm -rf "$work/rootfs"/var/cache/apt/archives/*.deb
  # The machine's own apt settings (proxies, mirrors) are needed where it has them.
  cp -a /etc/apt/apt.conf.d/. "$work/rootfs/etc/apt/apt.conf.d/"
  container=$(buildah "${storage[@]}" from scratch)
  buildah "${storage[@]}" add --quiet "$container" "$work/rootfs" /
  buildah "${storage[@]}" commit --quiet "$container" localhost/bookworm
  buildah "${storage[@]}" rm "$container" >/dev/null
  rm -rf "$work/rootfs"
fi

# Where this machine compiles with ccache, so does the image: the compilers are the same.
cache=()
if [[ -n ${CCACHE_DIR:-} ]] && ccache=$(command -v ccache); then
  printf 'base_dir = /src\nhash_dir = false\n' >"$work/ccache.conf"
  # The compiler's language counts for the cache.
  printf '#!/bin/sh\nLANG=%s exec /usr/local/bin/ccache "$@"\n' "${LANG:-}" >"$work/ccache"
  chmod +x "$work/ccache"
  cache=(--volume "$work/ccache:/usr/bin/ccache:ro" --volume "$ccache:/usr/local/bin/ccache:ro"
    --volume "$(realpath "$CCACHE_DIR"):/root/.cache/ccache"
    --volume "$work/ccache.conf:/root/.config/ccache/ccache.conf:ro")
  while read -r library; do  # Debian's base has the others.
    cache+=(--volume "$library:$library:ro")
  done < <(ldd "$ccache" | grep -oE '/[^ ]*libhiredis[^ ]*')
fi

echo "==> the Dockerfile"
buildah "${storage[@]}" build --format docker --layers \
  --build-arg BUILD_BASE=localhost/bookworm --build-arg RUN_BASE=localhost/bookworm \
  --build-arg "JOBS=$jobs" "${cache[@]}" --ignorefile "$root/.dockerignore" \
  --file "$root/docker/Dockerfile" --tag spel "$root"

echo "==> the image's binary"
container=$(buildah "${storage[@]}" from spel)
buildah "${storage[@]}" run "$container" -- spel --version
buildah "${storage[@]}" run "$container" -- id
# shellcheck disable=SC2016  # Expanded in the container.
buildah "${storage[@]}" run "$container" -- bash -c '
  spel serve --config /etc/spel/spel.json --host 127.0.0.1 --port 18980 2>/tmp/log & server=$!
  for _ in {1..240}; do spel health --port 18980 2>/dev/null && break; sleep 0.5; done
  spel health --port 18980 && echo healthy || { cat /tmp/log; exit 1; }
  kill $server; wait $server; echo "exit status $?"'
buildah "${storage[@]}" rm "$container" >/dev/null
buildah "${storage[@]}" images
