#!/bin/sh
# usage: chassis.sh <folder> 0x20 get|set <what> [value]…
#
# Carries out commands of ipmi_sim and of the Redfish fixture on a host, which is a folder.
# The folder has: power (empty: off), boot (for the next start only) and the journal. With disk.raw the host is a QEMU
# process with three disks. The folder then also has port (of the provisioning listener) and ssh (port for the SSH of the
# machine). An inserted medium is medium.iso.
D=$1
op=$3
shift 3
is_on() { [ -s "$D/power" ] && { [ ! -f "$D/disk.raw" ] || kill -0 "$(cat "$D/power")" 2>/dev/null; }; }
on() {
  is_on && return
  boot=$(cat "$D/boot" 2>/dev/null || echo disk)
  rm -f "$D/boot" # once
  echo "on $boot" >>"$D/journal"
  [ -f "$D/disk.raw" ] && start || echo 1 >"$D/power"
}
start() {
  drive() { echo "-drive file=$D/$1,format=raw,if=none,id=$2,cache=unsafe,discard=unmap -device $3,drive=$2,serial=disk-$2"; }
  alpha="$(drive disk.raw alpha virtio-blk-pci),bootindex=3"
  bravo=$(drive second.raw bravo virtio-blk-pci)
  # Kernels name disks in the order in which they find them. Here every start has another order.
  [ $(($(grep -c ^on "$D/journal") % 2)) = 1 ] && disks="$alpha $bravo" || disks="$bravo $alpha"
  [ "$boot" = pxe ] && first=,bootindex=1 || first=
  [ "$boot" = cd ] && disks="$disks -drive file=$D/medium.iso,media=cdrom,if=none,id=cd,readonly=on -device ide-cd,drive=cd,bootindex=2"
  network="user,id=n0,hostfwd=tcp:127.0.0.1:$(cat "$D/ssh")-:22,bootfile=http://10.0.2.2:$(cat "$D/port")/boot"
  setsid qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 256 -display none -chardev "file,id=c0,path=$D/serial.log,append=on" -serial chardev:c0 \
    $disks $(drive third.raw charlie nvme) -device virtio-rng-pci \
    -device "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:01$first" -netdev "$network" \
    >>"$D/qemu.out" 2>&1 </dev/null &
  echo $! >"$D/power"
}
off() {
  is_on || return
  echo "$1" >>"$D/journal"
  [ -f "$D/disk.raw" ] && kill -9 "$(cat "$D/power")"
  : >"$D/power"
}
case $op in
get) for name in "$@"; do
  case $name in
  power) is_on && echo power:1 || echo power:0 ;;
  boot) echo "boot:$(cat "$D/boot" 2>/dev/null || echo none)" ;;
  *) echo "$name:0" ;;
  esac
done ;;
set) while [ $# -ge 2 ]; do
  case $1 in
  power) [ "$2" = 1 ] && on || off off ;;
  boot) case $2 in pxe | cd) echo "$2" >"$D/boot" ;; *) echo disk >"$D/boot" ;; esac ;;
  reset) off off && on ;;
  shutdown) off soft ;;
  esac
  shift 2
done ;;
esac
exit 0
