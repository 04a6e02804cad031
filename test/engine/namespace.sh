#!/bin/bash
# usage: namespace.sh <folder> <command...>
#
# Runs a command in new network, mount and process namespaces, in which engines can start. Their processes, links and
# mounts vanish with the command. It needs root.
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
  # This /sys shows the new network, with the control groups of the host.
  mount --rbind /sys/fs/cgroup "$ENGINE_FOLDER/cgroup"
  mount -t sysfs sysfs /sys
  mount --rbind "$ENGINE_FOLDER/cgroup" /sys/fs/cgroup
  "$@"
  exit $? # not exec: this shell reaps the orphans of the engines
  ' namespace "$@"
