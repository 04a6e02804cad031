#!/bin/bash
# usage: incus-root.sh <folder>
# A Debian 13 with Incus in a folder, for `INCUS_ROOT=<folder> npm run test:engine`. It needs root, mmdebstrap and a mirror.
set -eu
mmdebstrap --quiet --variant=minbase \
  --include=incus-base,dnsmasq-base,btrfs-progs,squashfs-tools,nftables,iproute2,attr,ca-certificates \
  trixie "$1" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
