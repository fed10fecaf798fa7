#!/usr/bin/env bash
# Makes a base image for docker/Dockerfile where none can be pulled: Debian with Python, by debootstrap. Needs root.
#
#     docker/build-base.sh [TAG]        by default laststand-base:bookworm
#     docker build --build-arg BASE_IMAGE=laststand-base:bookworm -f docker/Dockerfile .
#
# Packages come from DEBIAN_MIRROR, by default the one that debootstrap chooses.
# The archive is kept in the user's cache, so that it is made once. The certificates that this machine trusts come
# with it, and pip is told to use them, because a machine that pulls nothing often sits behind a proxy of its own.
set -euo pipefail

tag=${1:-laststand-base:bookworm}
suite=bookworm
bundle=/etc/ssl/certs/ca-certificates.crt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/laststand/base
archive=$cache/$suite.tar

needs() { command -v "$1" >/dev/null || { echo "build-base.sh: $1 is needed; install it" >&2; exit 254; }; }
needs docker
if [ ! -e "$archive" ]; then
  needs debootstrap
  [ "$(id -u)" = 0 ] || { echo "build-base.sh: debootstrap needs root" >&2; exit 254; }
  mkdir -p "$cache"
  root=$(mktemp -d "$cache/rootfs.XXXXXX")
  trap 'rm -rf "$root"' EXIT
  debootstrap --variant=minbase --include=python3-minimal,python3-venv,ca-certificates \
    "$suite" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} \
    >"$cache/debootstrap.log" || { tail -n 5 "$cache/debootstrap.log" >&2; exit 1; }
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale,info}/*
  tar --numeric-owner --one-file-system -C "$root" -cf "$archive.new" .
  mv "$archive.new" "$archive"
fi

image=$(docker import "$archive")
context=$(mktemp -d)
trap 'rm -rf "$context" ${root:+"$root"}' EXIT
cp "$bundle" "$context/ca-certificates.crt"
docker build --quiet --tag "$tag" --file - "$context" <<DOCKERFILE
FROM $image
COPY ca-certificates.crt $bundle
ENV PIP_CERT=$bundle SSL_CERT_FILE=$bundle
LABEL org.laststand.image=base
DOCKERFILE
