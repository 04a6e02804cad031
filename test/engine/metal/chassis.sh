#!/bin/sh
# usage: chassis.sh <folder> 0x20 get|set <what> [value]…
#
# Carries out commands of ipmi_sim and of the Redfish fixture on a machine, which is a QEMU process.
# The folder has: port (of the provisioning listener), ssh (port for the machine's SSH), disk.raw. A pid file means power on.
D=$1
shift 2
op=$1
shift
P=$D/qemu.pid
alive() { [ -f "$P" ] && kill -0 "$(cat "$P")" 2>/dev/null; }
on() {
  alive && return
  order=c
  [ "$(cat "$D/boot" 2>/dev/null)" = pxe ] && order=n
  rm -f "$D/boot" # once
  echo "on $order" >>"$D/journal"
  network="user,id=n0,hostfwd=tcp:127.0.0.1:$(cat "$D/ssh")-:22,bootfile=http://10.0.2.2:$(cat "$D/port")/boot"
  setsid qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 256 -display none -chardev "file,id=c0,path=$D/serial.log,append=on" -serial chardev:c0 \
    -drive "file=$D/disk.raw,format=raw,if=virtio,cache=unsafe,discard=unmap" -device virtio-rng-pci \
    -device "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:01" -netdev "$network" -boot $order \
    >>"$D/qemu.out" 2>&1 </dev/null &
  echo $! >"$P"
}
off() {
  alive || return
  echo off >>"$D/journal"
  kill -9 "$(cat "$P")"
  rm -f "$P"
}
case $op in
get) for name in "$@"; do
  case $name in
  power) alive && echo power:1 || echo power:0 ;;
  boot) echo "boot:$(cat "$D/boot" 2>/dev/null || echo none)" ;;
  *) echo "$name:0" ;;
  esac
done ;;
set) while [ $# -ge 2 ]; do
  case $1 in
  power) [ "$2" = 1 ] && on || off ;;
  boot) echo "$2" >"$D/boot" ;;
  reset) off && on ;;
  shutdown) echo soft >>"$D/journal" && off ;;
  esac
  shift 2
done ;;
esac
exit 0
