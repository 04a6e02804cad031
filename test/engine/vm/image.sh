#!/bin/bash
# usage: image.sh <file.tar.gz>
#
# Makes an image of a virtual machine that boots by UEFI within seconds. It has the cloud kernel of Debian, busybox and
# dropbear. A few lines replace cloud-init. The home of root is on the disk. It needs the network of apt-get.
set -eu
file=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
root=$work/initrd
mkdir -p "$root"/{bin,sbin,proc,sys,dev/pts,etc/dropbear,root,lib,lib64,tmp,run,seed,mods,var/log,var/run} "$work/out"

kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p')
(cd "$work" && apt-get download -qq "$kernel" 2>/dev/null)
dpkg -x "$work/$kernel"_*.deb "$work/kernel"
version=$(ls "$work/kernel/lib/modules")
/sbin/depmod -b "$work/kernel" "$version"

cp /bin/busybox "$root/bin/"
for applet in sh mount insmod ip cat sed hostname ls sleep poweroff chmod chown mkdir echo grep touch sync dd nproc ping; do
  ln -s busybox "$root/bin/$applet"
done
cp /usr/sbin/dropbear "$root/bin/"
ldd /usr/sbin/dropbear | grep -o '/[^ ]*' | while read -r library; do cp -L --parents "$library" "$root/"; done
for module in virtio_pci virtio_net virtio_scsi virtio_blk sd_mod sr_mod isofs nls_ascii nls_cp437 vfat button virtio_rng evdev; do
  /sbin/modprobe -d "$work/kernel" -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' | while read -r path; do
  name=$(basename "${path%.xz}")
  if [ "$path" = "${path%.xz}" ]; then cp "$path" "$root/mods/"; else xz -dc "$path" >"$root/mods/$name"; fi
  echo "$name"
done >"$root/mods/list"

cat >"$root/init" <<'EOF'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
exec >/dev/ttyS0 2>&1 </dev/ttyS0
while read -r module; do insmod "/mods/$module"; done </mods/list
for _ in 1 2 3 4 5 6 7 8 9 10; do
  [ -e /dev/sr0 ] && [ -e /dev/sda1 ] && [ -e /sys/class/net/eth0 ] && break
  sleep 0.3
done
mount -t iso9660 -o ro /dev/sr0 /seed
mount -t vfat -o umask=077 /dev/sda1 /root
hostname "$(sed -n 's/^ *"hostname": *"\([^"]*\)".*/\1/p' /seed/user-data)"
ip link set lo up
ip link set eth0 up
for address in $(sed -n 's/^[^[]*"addresses": *\[\([^]]*\)\].*/\1/p' /seed/network-config | sed 's/[",]/ /g'); do ip addr add "$address" dev eth0; done
gateway=$(sed -n 's/.*"gateway4": *"\([^"]*\)".*/\1/p' /seed/network-config)
[ -n "$gateway" ] && ip route add default via "$gateway"
mkdir -p /root/.ssh
sed -n 's/^ *"\(\(ssh-\|ecdsa-\|sk-\)[^"]*\)",*$/\1/p' /seed/user-data >/root/.ssh/authorized_keys
(while :; do
  dropbear -F -R -s -E -p 22
  sleep 1
done) &
# The power button of ACPI.
button=$(grep -A 9 'Name="Power Button"' /proc/bus/input/devices | sed -n 's/.*\(event[0-9]*\).*/\1/p')
dd bs=24 count=1 of=/dev/null if="/dev/input/$button" && sync && poweroff -f
EOF
chmod +x "$root/init"
echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
echo root:x:0: >"$root/etc/group"
echo /bin/sh >"$root/etc/shells"
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1 >"$work/initrd.gz")

printf 'console=ttyS0 quiet panic=-1 mitigations=off tsc=unstable' >"$work/cmdline"
printf 'ID=tiny\nVERSION_ID=1\n' >"$work/os"
objcopy --add-section .osrel="$work/os" --change-section-vma .osrel=0x20000 \
  --add-section .cmdline="$work/cmdline" --change-section-vma .cmdline=0x30000 \
  --add-section .linux="$work/kernel/boot/vmlinuz-$version" --change-section-vma .linux=0x2000000 \
  --add-section .initrd="$work/initrd.gz" --change-section-vma .initrd=0x3000000 \
  /usr/lib/systemd/boot/efi/linuxx64.efi.stub "$work/boot.efi"
truncate -s 40M "$work/partition"
mkfs.vfat -F 16 "$work/partition" >/dev/null
mmd -i "$work/partition" ::EFI ::EFI/BOOT
mcopy -i "$work/partition" "$work/boot.efi" ::EFI/BOOT/BOOTX64.EFI
truncate -s 42M "$work/disk"
printf 'label: gpt\nstart=2048,size=81920,type=U\n' | sfdisk -q "$work/disk"
dd if="$work/partition" of="$work/disk" bs=1M seek=1 conv=notrunc status=none
qemu-img convert -O qcow2 "$work/disk" "$work/out/rootfs.img"
cat >"$work/out/metadata.yaml" <<'EOF'
architecture: x86_64
creation_date: 1700000000
properties: {description: "tiny virtual machine (busybox, dropbear)", os: tiny, release: "1"}
EOF
mkdir -p "$(dirname "$file")"
tar -C "$work/out" --numeric-owner --owner=0 --group=0 -czf "$file" metadata.yaml rootfs.img
