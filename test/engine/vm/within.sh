#!/bin/bash
# usage: within.sh <folder> <command...>
#
# Runs an LXD or Incus that believes in KVM. The real /dev stays as it is. An engine in another root sees the folder, too.
set -eu
here=$(dirname "$(realpath "$0")")
mkdir -p "$1/bin"
cp "$here"/{engine-exec,modprobe,qemu-system-x86_64} "$1/bin/"
export DEVICES=$1/dev PATH=$1/bin:$PATH LXD_EXEC_PATH=$1/bin/engine-exec INCUS_EXEC_PATH=$1/bin/engine-exec
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
