#!/bin/bash
# usage: within.sh <folder> <command...>
#
# Runs an LXD that believes in KVM. The real /dev stays as it is.
set -eu
here=$(dirname "$(realpath "$0")")
export DEVICES=$1/dev PATH=$here:$PATH LXD_EXEC_PATH=$here/lxd-exec
shift
exec unshare -m --propagation private bash -ec '
  mkdir -p "$DEVICES"
  mount --rbind /dev "$DEVICES"
  mount -t tmpfs -o mode=755 tmpfs /dev
  for node in "$DEVICES"/*; do
    name=${node##*/}
    case $name in kvm | vhost*) continue ;; esac
    if [ -d "$node" ] && [ ! -L "$node" ]; then
      mkdir "/dev/$name"
      mount --rbind "$node" "/dev/$name"
    else
      cp -a "$node" /dev/
    fi
  done
  # QEMU runs as another user than root, and some hosts give this device to root alone.
  umount /dev/net
  cp -a "$DEVICES/net/tun" /dev/net/
  chmod 666 /dev/net/tun
  : >/dev/kvm
  exec "$@"' within "$@"
