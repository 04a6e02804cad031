#!/bin/bash
# usage: oci.sh <freehold.deb> [folder]
#
# `npm run package:oci -- <freehold.deb>` makes dist/freehold_<version>_<architecture>.oci.tar of a file of `npm run package:deb`. It is
# an image for podman, Docker and Kubernetes. It needs root, mmdebstrap, buildah and a mirror of Debian. The same file and the same
# mirror give the same root filesystem. DEBIAN_MIRROR=https://snapshot.debian.org/archive/debian/<time> repeats it years later.
set -eu
package=$(realpath "$1")
target=$(realpath -m "${2:-dist}")
umask 022
version=$(dpkg-deb --field "$package" Version)
architecture=$(dpkg-deb --field "$package" Architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(dpkg-deb --ctrl-tarfile "$package" | TZ=UTC tar -t --full-time -v | awk 'NR == 1 {print $4, $5}' | date -u -f - +%s)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
# The storage of buildah is a folder of this program, which removes it at its end.
buildah() {
  command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}
trap 'buildah rm --all >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
cp "$package" "$work/freehold.deb"
chmod 755 "$work"

# A volume outlives its image, so the user keeps its number.
mmdebstrap --variant=minbase --include=adduser --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='chroot "$1" adduser --quiet --system --group --uid 990 --no-create-home --home /var/lib/freehold freehold' \
  --customize-hook="copy-in '$work/freehold.deb' /root" \
  --customize-hook='chroot "$1" apt-get install --quiet --yes --no-install-recommends /root/freehold.deb >/dev/null' \
  --customize-hook='rm -rf "$1"/root/freehold.deb "$1"/var/log/* "$1"/var/cache/* "$1"/etc/machine-id "$1"/etc/hostname "$1"/etc/resolv.conf' \
  trixie "$work/root.tar" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
  "deb ${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security} trixie-security main"

image=$(buildah from scratch)
buildah add --quiet "$image" "$work/root.tar" / >/dev/null
# A caller from outside does not reach 127.0.0.1 of a container. The internal listener stays there until the operator opens it.
buildah config --arch "$architecture" --user freehold --workingdir /var/lib/freehold --volume /var/lib/freehold --port 3000/tcp --port 3001/tcp \
  --env DATA_DIR=/var/lib/freehold --env HOST=0.0.0.0 --stop-signal SIGTERM --cmd '' \
  --entrypoint '["/usr/lib/freehold/debian/run.sh", "start.js"]' --label "org.opencontainers.image.version=$version" \
  --label org.opencontainers.image.title=Freehold --label org.opencontainers.image.licenses=MIT "$image"
mkdir -p "$target"
file=$target/freehold_${version}_$architecture.oci.tar
rm -f "$file"
buildah commit --quiet --timestamp "$SOURCE_DATE_EPOCH" "$image" "oci-archive:$file:freehold:$version" >/dev/null
(cd "$target" && sha256sum "$(basename "$file")" | tee "$(basename "$file").sha256")
