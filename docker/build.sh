#!/usr/bin/env bash
# Builds the images of this checkout: laststand (nodes), laststand-toxiproxy, and with --all laststand-analysis and
# laststand-prometheus.
#
# BASE_IMAGE names the base; by default the official Python image, or where that cannot be pulled one by build-base.sh.
# A toxiproxy-server that `make setup` has built already is used as it is. PIP_INDEX_URL, PIP_EXTRA_INDEX_URL and
# GOPROXY of the environment hold inside the build, too. Several of these wait for each other. Where a step fails, its last
# lines are printed.
set -euo pipefail
cd "$(dirname "$0")/.."

official=python:3.12-slim-bookworm
local=laststand-base:bookworm
docker info >/dev/null 2>&1 || { echo "build.sh: no Docker engine answers; start one, or join the group docker" >&2; exit 254; }
mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}/laststand"
exec 9>"${XDG_CACHE_HOME:-$HOME/.cache}/laststand/images.lock"
flock 9
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { # WHAT COMMAND...
  local what=$1 code=0; shift
  "$@" >"$log" 2>&1 9>&- || code=$?
  [ "$code" = 0 ] || { tail -n 20 "$log" >&2; echo "build.sh: $what failed" >&2; exit "$code"; }
}
has() { docker image inspect "$1" >/dev/null 2>&1; }
if [ -z "${BASE_IMAGE:-}" ]; then
  if has "$official" || { ! has "$local" && timeout 60 docker pull --quiet "$official" >/dev/null 2>&1; }; then
    BASE_IMAGE=$official
  else
    BASE_IMAGE=$local
    has "$local" || { echo "building the base image $local, once"; quietly "the base image" docker/build-base.sh "$local"; }
  fi
fi

arguments=(--build-arg "BASE_IMAGE=$BASE_IMAGE")
for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL GOPROXY; do
  [ -z "${!name:-}" ] || arguments+=(--build-arg "$name=${!name}")
done
build() { # TARGET IMAGE
  echo "building $2 from $BASE_IMAGE"
  quietly "$2" docker build "${arguments[@]}" --target "$1" --tag "$2" --file docker/Dockerfile .
}

build node laststand
if server=$(.venv/bin/python -m laststand.emulator.cluster.toxiproxy_build --print 2>/dev/null); then
  quietly laststand-toxiproxy docker build --tag laststand-toxiproxy --file docker/toxiproxy.Dockerfile "$(dirname "$server")"
else
  build toxiproxy laststand-toxiproxy
fi
if [ "${1:-}" = --all ]; then
  build analysis laststand-analysis
  build prometheus laststand-prometheus
fi
docker images --format '{{.Repository}} {{.Size}}' | grep -E '^laststand' | sort -u
