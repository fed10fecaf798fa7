#!/usr/bin/env bash
# Builds the images of this checkout: laststand (nodes), laststand-toxiproxy, and with --analysis laststand-analysis.
#
# BASE_IMAGE names the base; by default the official Python image, or where that cannot be pulled one by build-base.sh.
# A toxiproxy-server that `make setup` has built already is used as it is. PIP_INDEX_URL, PIP_EXTRA_INDEX_URL and
# GOPROXY of the environment hold inside the build, too.
set -euo pipefail
cd "$(dirname "$0")/.."

official=python:3.12-slim-bookworm
local=laststand-base:bookworm
docker info >/dev/null 2>&1 || { echo "build.sh: no Docker engine answers; start one, or join the group docker" >&2; exit 254; }
has() { docker image inspect "$1" >/dev/null 2>&1; }
if [ -z "${BASE_IMAGE:-}" ]; then
  if has "$official" || { ! has "$local" && timeout 60 docker pull --quiet "$official" >/dev/null 2>&1; }; then
    BASE_IMAGE=$official
  else
    BASE_IMAGE=$local
    has "$local" || { echo "building the base image $local, once"; docker/build-base.sh "$local" >/dev/null; }
  fi
fi

arguments=(--build-arg "BASE_IMAGE=$BASE_IMAGE")
for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL GOPROXY; do
  [ -z "${!name:-}" ] || arguments+=(--build-arg "$name=${!name}")
done
build() { # TARGET IMAGE
  echo "building $2 from $BASE_IMAGE"
  docker build --quiet "${arguments[@]}" --target "$1" --tag "$2" --file docker/Dockerfile . >/dev/null
}

build node laststand
if server=$(.venv/bin/python -m emulator.cluster.toxiproxy_build --print 2>/dev/null); then
  docker build --quiet --tag laststand-toxiproxy --file docker/toxiproxy.Dockerfile "$(dirname "$server")" >/dev/null
else
  build toxiproxy laststand-toxiproxy
fi
[ "${1:-}" != --analysis ] || build analysis laststand-analysis
docker images --format '{{.Repository}} {{.Size}}' | grep -E '^laststand' | sort -u
