#!/bin/bash
# usage: debian-image.sh <file.tar>
#
# Makes an image of Debian 13 with cloud-init and OpenSSH for LXD and Incus, for sale or for
# `DEBIAN_IMAGE=<file.tar> npm run test:engine`. It needs root, mmdebstrap and a mirror.
set -eu
file=$(realpath -m "$1")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
security=${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/templates"

mmdebstrap --quiet --variant=minbase \
  --include=systemd-sysv,udev,dbus,openssh-server,cloud-init,iproute2,netbase,ca-certificates,procps \
  --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1"/var/lib/dbus/machine-id; : >"$1"/etc/machine-id' \
  --customize-hook='chroot "$1" systemctl --quiet enable systemd-networkd' \
  trixie "$work/rootfs" "$mirror" "deb $security trixie-security main"

# cloud-init knows the socket of LXD only. Both engines write these files, which cloud-init reads before any socket.
printf 'instance-id: {{ container.name }}\nlocal-hostname: {{ container.name }}\n' >"$work/templates/meta.tpl"
echo '{{ config_get("cloud-init.user-data", "") }}' >"$work/templates/user.tpl"
echo '{{ config_get("cloud-init.network-config", "") }}' >"$work/templates/network.tpl"
seed=/var/lib/cloud/seed/nocloud-net
cat >"$work/metadata.yaml" <<EOF
architecture: x86_64
creation_date: $(date +%s)
properties: {description: "Debian 13 (cloud-init, OpenSSH)", os: debian, release: trixie}
templates:
  $seed/meta-data: {when: [create, copy], template: meta.tpl}
  $seed/user-data: {when: [create, copy], template: user.tpl}
  $seed/network-config: {when: [create, copy], template: network.tpl}
EOF
mkdir -p "$(dirname "$file")"
tar -C "$work" --numeric-owner -cf "$file" metadata.yaml templates rootfs
