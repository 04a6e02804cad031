#!/bin/bash
# usage: incus-root.sh <folder> [more packages, such as ,qemu-system-x86,ovmf,qemu-utils,genisoimage,gdisk]
#
# Unpacks the Incus of Debian 13 into a folder, for `INCUS_ROOT=<folder> npm run test:engine`.
# It needs root, mmdebstrap and a mirror.
set -eu
mmdebstrap --quiet --variant=extract \
  --include=incus-base,dnsmasq-base,btrfs-progs,squashfs-tools,nftables,iproute2,attr,ca-certificates,base-files,bash,coreutils,dash,findutils,grep,gzip,mount,sed,tar,util-linux,xz-utils"${2-}" \
  trixie "$1" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
# The packages are not configured, which would take longer than all other steps. Incus needs only these two files.
for name in passwd group; do cp "$1/usr/share/base-passwd/$name.master" "$1/etc/$name"; done
for name in subuid subgid; do echo root:1000000:1000000000 >"$1/etc/$name"; done
