#!/bin/bash
# usage: namespace.sh <folder> <command...>
# Runs a command in network, mount and process namespaces of its own, in which engines can be started. With the command
# everything that they made is gone: processes, links, mounts. It needs root.
set -eu
folder=$(realpath -m "$1")
shift
mkdir -p "$folder/cgroup"
export ENGINE_FOLDER=$folder
exec unshare --net --mount --pid --fork --kill-child --mount-proc bash -c '
  set -eu
  ip link set lo up
  mount -t tmpfs tmpfs /run
  mkdir -p /run/netns
  # A /sys that shows this network, with the control groups of the machine.
  mount --rbind /sys/fs/cgroup "$ENGINE_FOLDER/cgroup"
  mount -t sysfs sysfs /sys
  mount --rbind "$ENGINE_FOLDER/cgroup" /sys/fs/cgroup
  "$@"
  exit $? # not exec: this shell reaps what engines leave behind
  ' namespace "$@"
