#!/bin/bash
# build.sh <folder> [kernel package]
#
# Builds vmlinuz and initrd.img for machines that boot from the network. Controllers present boot.iso as virtual media.
# SHA256SUMS gets their checksums, and keeps other lines.
# Needs: busybox-static cpio kmod fdisk dosfstools; for boot.iso xorriso mtools grub-pc-bin grub-efi-amd64-bin.
# The default kernel has drivers for real hardware; linux-image-cloud-amd64 is small.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
out=$(realpath -m "$1")
package=${2:-linux-image-amd64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/kernel" "$work/root"/{bin,proc,sys,dev,lib,lib64}
cd "$work"
chmod 777 "$work" # apt-get downloads as its own user.
apt-get download -qq "$(apt-cache depends "$package" | awk '/Depends: linux-image-[0-9]/ {print $2; exit}')"
dpkg-deb -x linux-image-*.deb kernel
version=$(basename kernel/lib/modules/*)
cp "kernel/boot/vmlinuz-$version" "$out/vmlinuz"

cd root
cp /bin/busybox bin/
ln -s busybox bin/sh
for program in sfdisk mkfs.vfat; do
  cp "$(command -v $program)" bin/
  ldd "$(command -v $program)" | grep -o '/[^ ]*' | while read -r library; do cp -L --parents "$library" .; done
done
cp "$here/init" "$here/disks.sh" .
chmod +x init
# Modules for storage, networks and FAT volumes, with their dependencies.
parts='drivers/(ata|block|nvme|scsi|virtio|net/ethernet|net/virtio_net|net/mdio|net/phy|md|message|char/hw_random|usb/host)|fs/(fat|nls)'
depmod -b "$work/kernel" "$version"
modules=lib/modules/$version
mkdir -p "$modules"
sed -nE "s#^(kernel/($parts)[/.].*)#\1#p" "$work/kernel/$modules/modules.dep" | tr -d : | tr ' ' '\n' | sort -u |
  while read -r module; do [ -z "$module" ] || install -D -m 644 "$work/kernel/$modules/$module" "$modules/$module"; done
cp "$work/kernel/$modules"/modules.{builtin,order} "$modules/"
depmod -b . "$version" 2>/dev/null
find . | cpio -o -H newc --quiet | gzip -1 >"$out/initrd.img"

made=(vmlinuz initrd.img)
if command -v grub-mkrescue >/dev/null && command -v xorriso >/dev/null; then
  mkdir -p "$work/iso/boot/grub"
  cp "$out/vmlinuz" "$out/initrd.img" "$work/iso"
  # The listener puts the job of each machine here: JOB_BYTES_MAX of job.ts.
  (yes FREEHOLD-JOB || true) | head -c 524288 >"$work/iso/job.cpio"
  printf 'linux /vmlinuz %s\ninitrd /initrd.img /job.cpio\nboot\n' \
    'console=tty0 console=ttyS0,115200 libata.ignore_hpa=1' >"$work/iso/boot/grub/grub.cfg"
  grub-mkrescue -o "$out/boot.iso" "$work/iso" 2>"$work/log" || { cat "$work/log" >&2 && exit 1; }
  made+=(boot.iso)
else
  echo 'Without grub-mkrescue and xorriso, there is no boot.iso: only isolated networks can boot.' >&2
fi
cd "$out"
touch SHA256SUMS
{ grep -vE " [ *](vmlinuz|initrd\.img|boot\.iso)$" SHA256SUMS || true; sha256sum "${made[@]}"; } >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
ls -l "${made[@]}"
