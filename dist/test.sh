#!/bin/sh
# Packs a binary, installs it from the archive into a scratch prefix, uses it, and takes it away again.
set -eu
cd "$(dirname "$0")/.."
binary=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dist/build.sh "$binary" >/dev/null
(cd target/dist && sha256sum -c --quiet ./*.sha256)
tar -xzf target/dist/stele-*.tar.gz -C "$work"
"$work"/stele-*/install.sh --prefix "$work/prefix" >/dev/null
"$work/prefix/bin/stele" --version >/dev/null
for file in bin/stele share/man/man1/stele.1 share/man/man1/stele-memory-put.1 share/zsh/site-functions/_stele \
    share/bash-completion/completions/stele share/fish/vendor_completions.d/stele.fish; do
    [ -s "$work/prefix/$file" ] || { echo "$file was not installed" >&2; exit 1; }
done
"$work"/stele-*/install.sh --prefix "$work/prefix" --uninstall >/dev/null
left=$(find "$work/prefix" -type f)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo "the archive installs, runs and uninstalls"
