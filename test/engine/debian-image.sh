#!/bin/bash
# usage: debian-image.sh <file.tar> [trixie|bookworm|noble|<folder>]
#
# Makes an image of Debian 13 or 12, or of Ubuntu 24.04, with cloud-init and OpenSSH for LXD and Incus. It is for sale, or for
# `DEBIAN_IMAGE=<file.tar> npm run test:engine`. It needs root, mmdebstrap and a mirror. Ubuntu also needs its keyring in
# UBUNTU_KEYRING. From a folder it makes an image of any root filesystem, and needs neither.
set -eu
file=$(realpath -m "$1")
suite=${2:-trixie}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/templates"

packages=systemd-sysv,udev,dbus,openssh-server,cloud-init,iproute2,netbase,ca-certificates,procps
if [ -d "$suite" ]; then
  cp -a "$suite" "$work/rootfs"
  rm -f "$work"/rootfs/etc/ssh/ssh_host_*
  : >"$work/rootfs/etc/machine-id"
else
  if [ "$suite" = noble ]; then
    mirror=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
    set -- --keyring="${UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}" \
      --include="$packages,netplan.io,locales" noble "$work/rootfs" "deb $mirror noble main universe" "deb $mirror noble-updates main universe" \
      "deb ${UBUNTU_SECURITY_MIRROR:-http://security.ubuntu.com/ubuntu} noble-security main universe"
  else
    set -- --include="$packages" "$suite" "$work/rootfs" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
      "deb ${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security} $suite-security main"
  fi
  mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1"/var/lib/dbus/machine-id; : >"$1"/etc/machine-id' \
    --customize-hook='chroot "$1" systemctl --quiet enable systemd-networkd' \
    "$@"
fi

# The archive of Debian 12 has a cloud-init that fails for its own default, en_US.UTF-8.
mkdir -p "$work/rootfs/etc/cloud/cloud.cfg.d"
echo 'locale: C.UTF-8' >"$work/rootfs/etc/cloud/cloud.cfg.d/90-image.cfg"

# cloud-init knows the socket of LXD only. Both engines write these files, which cloud-init reads before any socket.
printf 'instance-id: {{ container.name }}\nlocal-hostname: {{ container.name }}\n' >"$work/templates/meta.tpl"
echo '{{ config_get("cloud-init.user-data", "") }}' >"$work/templates/user.tpl"
echo '{{ config_get("cloud-init.network-config", "") }}' >"$work/templates/network.tpl"
seed=/var/lib/cloud/seed/nocloud-net
cat >"$work/metadata.yaml" <<EOF
architecture: x86_64
creation_date: $(date +%s)
properties: {description: "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$work/rootfs/etc/os-release") (cloud-init, OpenSSH)"}
templates:
  $seed/meta-data: {when: [create, copy], template: meta.tpl}
  $seed/user-data: {when: [create, copy], template: user.tpl}
  $seed/network-config: {when: [create, copy], template: network.tpl}
EOF
mkdir -p "$(dirname "$file")"
tar -C "$work" --numeric-owner -cf "$file" metadata.yaml templates rootfs
