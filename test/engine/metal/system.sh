#!/bin/bash
# usage: system.sh <folder with vmlinuz and initrd.img of the installer> <image>
#
# Makes a bootable disk image of 64 MiB.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
netboot=$1
image=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/root"
cd "$work/root"
gunzip -c "$netboot/initrd.img" | cpio -id --quiet
cp "$here/system-init" init
chmod +x init
cp /usr/sbin/dropbear bin/
ldd /usr/sbin/dropbear | grep -o '/[^ ]*' | while read -r library; do cp -L --parents "$library" .; done
find . | cpio -o -H newc --quiet | gzip -1 >"$work/initrd.img"

truncate -s 64M "$image"
echo 'start=2048, type=c, bootable' | sfdisk --quiet "$image"
dd if=/usr/lib/syslinux/mbr/mbr.bin of="$image" bs=440 count=1 conv=notrunc status=none
mkfs.vfat -n SYSTEM --offset 2048 "$image" $((63 * 1024)) >/dev/null
printf 'DEFAULT system\nPROMPT 0\nLABEL system\n KERNEL vmlinuz\n INITRD initrd.img\n APPEND console=ttyS0 quiet\n' >"$work/syslinux.cfg"
export MTOOLS_SKIP_CHECK=1
mcopy -i "$image@@1M" "$netboot/vmlinuz" "$work/initrd.img" "$work/syslinux.cfg" ::
syslinux --offset $((1024 * 1024)) --install "$image"
