#!/bin/sh
# Makes target/dist/stele-<version>-<arch>.tar.gz for this platform: the stripped binary, install.sh, completions,
# manual pages, the systemd unit, LICENSE and README. With a path as argument it packs that binary instead of building.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=stele-$version-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]')
out=target/dist
stage=$out/$name

if [ $# -gt 0 ]; then
    binary=$1
else
    if scripts/need.sh node; then make --no-print-directory console; else echo "without the console: it is made with Node.js 20 or newer and npm" >&2; fi
    cargo build --release --locked --bin stele
    binary=target/release/stele
fi

rm -rf "$stage"
mkdir -p "$stage/completions" "$stage/man"
strip -o "$stage/stele" "$binary"
"$stage/stele" completions bash >"$stage/completions/stele.bash"
"$stage/stele" completions zsh >"$stage/completions/_stele"
"$stage/stele" completions fish >"$stage/completions/stele.fish"
"$stage/stele" man "$stage/man"
cp dist/install.sh dist/stele.service LICENSE "$stage/"
[ ! -f README.md ] || cp README.md "$stage/"
chmod 755 "$stage/stele" "$stage/install.sh"

# The same tree gives the same archive: names in order, no owners, the time of the commit.
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" -cf - "$name" |
    gzip -9n >"$out/$name.tar.gz"
rm -rf "$stage"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
ls -l "$out/$name.tar.gz"
