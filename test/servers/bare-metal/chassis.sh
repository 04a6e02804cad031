#!/bin/sh
# usage: chassis.sh <folder> 0x20 get|set <what> [value]…
#
# Carries out commands of ipmi_sim on a simulated host, which is a folder.
# The folder has: power, boot (for the next start only) and the journal.
D=$1
op=$3
shift 3
is_on() { [ -s "$D/power" ]; }
off() { is_on && echo "$1" >>"$D/journal" && : >"$D/power"; }
on() {
  is_on && return
  echo "on $(cat "$D/boot" 2>/dev/null || echo disk)" >>"$D/journal"
  rm -f "$D/boot"
  echo 1 >"$D/power"
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
  boot) [ "$2" = pxe ] && echo pxe >"$D/boot" || echo disk >"$D/boot" ;;
  reset) off off && on ;;
  shutdown) off soft ;;
  esac
  shift 2
done ;;
esac
exit 0
