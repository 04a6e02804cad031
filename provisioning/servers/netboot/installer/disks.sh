# Disks, by names that do not change over boots: those of /dev/disk/by-id, as udev makes them, and bare serial numbers.
# The names of devices, such as sda, are given in the order in which the kernel finds them.

# Prints a text of the kernel as udev writes it in a name.
tidy() { tr -d '\000' 2>/dev/null | head -n 1 | sed 's/^ *//; s/ *$//; s/[^A-Za-z0-9#+.:=@_-]\{1,\}/_/g'; }
first_of() { for file in "$@"; do [ -s $file ] && cat $file 2>/dev/null && return; done; }

# Prints the names of a disk. $1 its folder in /sys/block
names_of() {
  wwid=$(first_of $1/wwid $1/device/wwid | tidy)
  serial=$(first_of $1/serial $1/device/serial | tidy)
  # SCSI: the page has four bytes before the number. ATA: another page has model and number in columns.
  [ -n "$serial" ] || serial=$(tail -c +5 $1/device/vpd_pg80 2>/dev/null | tidy)
  ata=$(strings -n 20 $1/device/vpd_pg83 2>/dev/null | sed -n 's/.*ATA     //p' | head -n 1)
  model=$(first_of $1/device/model | tidy)
  case $wwid in
  naa.*) echo wwn-0x${wwid#naa.} scsi-3${wwid#naa.} ;;
  eui.* | nvme.* | uuid.*) echo nvme-$wwid ;;
  esac
  [ -z "$ata" ] || echo ata-$(printf '%s' "$ata" | cut -c1-40 | tidy)_$(printf '%s' "$ata" | cut -c41-60 | tidy)
  [ -n "$serial" ] || return 0
  case ${1##*/} in
  vd*) echo virtio-$serial ;;
  nvme*) echo nvme-${model}_$serial nvme-${model}_${serial}_${1##*n} ;;
  esac
  echo $serial
}

# Links the names of all disks, also of those that the operator did not list. $shared gets the names that several disks have:
# the namespaces of an NVMe drive have one serial number.
link_disks() {
  rm -rf /dev/disk/by-id && mkdir -p /dev/disk/by-id
  mdev -s
  disks=
  shared=
  for path in /sys/block/*; do
    case ${path##*/} in loop* | ram* | zram* | sr* | fd* | md* | dm-* | nbd*) continue ;; esac
    [ "$(cat $path/size)" -gt 0 ] && [ ! -e $path/hidden -o "$(cat $path/hidden)" != 1 ] || continue
    disks="$disks /dev/${path##*/}"
    for name in $(names_of $path); do
      case $(device_of $name) in '' | /dev/${path##*/}) ;; *) shared="$shared $name" ;; esac
      ln -sf /dev/${path##*/} /dev/disk/by-id/$name
    done
  done
}
device_of() { readlink /dev/disk/by-id/$1; }
# Prints the operator's name of a device, or its first own one.
name_of() {
  for name in $fh_disks $(names_of /sys/block/${1##*/}); do
    [ "$(device_of $name)" = $1 ] && echo $name && return
  done
  echo "unnamed-${1##*/}"
}

# Finds each of the operator's disks. Otherwise $problem says why not.
find_disks() {
  link_disks
  problem=
  seen=
  for name in $fh_disks; do
    device=$(device_of $name)
    [ -n "$device" ] || problem="$problem There is no disk $name."
    case " $shared " in *" $name "*) problem="$problem Several disks have the name $name." ;; esac
    case " $seen " in *" ${device:-none} "*) problem="$problem $name is another name of a listed disk." ;; esac
    seen="$seen $device"
  done
  [ -z "$problem" ] || problem="$problem The host has: $(ls /dev/disk/by-id | tr '\n' ' ')"
  [ -z "$problem" ]
}

# Whether an unlisted disk is none of the host: a stick, or virtual media.
is_foreign() { [ "$(cat /sys/block/${1##*/}/removable)" = 1 -o "$(cat /sys/block/${1##*/}/ro)" = 1 ]; }
is_listed() { case " $fh_disks " in *" $(name_of $1) "*) return 0 ;; *) return 1 ;; esac; }

# Wipes and verifies all disks at once. /verified gets a line for each: its name, its bytes and its samples.
wipe_disks() {
  rm -f /verified.* /failed.*
  wipers=
  for disk in $disks; do
    ! is_foreign $disk || is_listed $disk || continue
    { wipe_disk $disk && verify $disk >/verified.${disk##*/} || echo " $(name_of $disk)" >/failed.${disk##*/}; } &
    wipers="$wipers $!"
  done
  wait $wipers
  cat /verified.* >/verified 2>/dev/null
  problem="These disks could not be wiped:$(cat /failed.* 2>/dev/null)"
  ! ls /failed.* >/dev/null 2>&1
}

# Discards every block, if the disk can, and then overwrites the whole disk with zeros.
wipe_disk() {
  blkdiscard $1 && echo "Discarded $1."
  sectors=$(blockdev --getsz $1)
  mib=$((sectors / 2048))
  rest=$((sectors % 2048))
  dd if=/dev/zero of=$1 bs=1M count=$mib conv=fsync || return 1
  [ $rest = 0 ] || dd if=/dev/zero of=$1 bs=512 seek=$((mib * 2048)) count=$rest conv=fsync
}

# Reads both ends of a disk and 256 other places of 64 KiB from the disk itself, not from memory.
verify() {
  blockdev --flushbufs $1 || return 1
  blocks=$(($(blockdev --getsize64 $1) / 65536))
  samples=0
  for block in 0 $((blocks - 1)) $(awk -v max=$blocks -v seed=$(od -An -N4 -tu4 /dev/urandom) \
    'BEGIN { srand(seed); for (i = 0; i < 256; i++) printf "%d ", rand() * max }'); do
    [ $(dd if=$1 bs=65536 skip=$block count=1 2>/dev/null | wc -c) = 65536 ] || return 1
    [ $(dd if=$1 bs=65536 skip=$block count=1 2>/dev/null | tr -d '\000' | wc -c) = 0 ] || return 1
    samples=$((samples + 1))
  done
  echo "$(name_of $1) $((blocks * 65536)) bytes, $samples samples"
}
