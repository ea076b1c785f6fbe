#!/bin/sh
# Installs Stele from the directory that this script lies in.
#
#   ./install.sh [--prefix DIR] [--systemd] [--uninstall]
#
# The prefix is /usr/local for root, else ~/.local. --systemd also installs the unit (root only) and starts nothing.
# --uninstall takes away what was installed; data is never touched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
systemd=no
action=install
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -gt 1 ] || { echo "install.sh: --prefix needs a directory" >&2; exit 2; }
        prefix=$2
        shift
        ;;
    --systemd) systemd=yes ;;
    --uninstall) action=uninstall ;;
    -h | --help)
        sed -n '2,8s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "install.sh: there is no option $1" >&2
        exit 2
        ;;
    esac
    shift
done
unit=${SYSTEMD_UNIT_DIR:-/etc/systemd/system}/stele.service

# Source and target of every file, a line each.
files() {
    echo "stele bin/stele 755"
    echo "completions/stele.bash share/bash-completion/completions/stele 644"
    echo "completions/_stele share/zsh/site-functions/_stele 644"
    echo "completions/stele.fish share/fish/vendor_completions.d/stele.fish 644"
    for page in "$here"/man/*.1; do
        echo "man/$(basename "$page") share/man/man1/$(basename "$page") 644"
    done
}

if [ "$action" = uninstall ]; then
    files | while read -r _ target _; do rm -f "$prefix/$target"; done
    [ "$systemd" = no ] || rm -f "$unit"
    echo "Stele is gone from $prefix; its data is where it was."
    exit 0
fi

[ "$systemd" = no ] || [ -w "$(dirname "$unit")" ] || {
    echo "install.sh: $(dirname "$unit") cannot be written: run it as root for --systemd" >&2
    exit 1
}
mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] || {
    echo "install.sh: $prefix cannot be written: name another place with --prefix, or run it as root" >&2
    exit 1
}
files | while read -r source target mode; do
    mkdir -p "$(dirname "$prefix/$target")"
    # Beside it and then renamed: a running server keeps its binary, and nobody sees half a file.
    cp "$here/$source" "$prefix/$target.new"
    chmod "$mode" "$prefix/$target.new"
    mv -f "$prefix/$target.new" "$prefix/$target"
done
echo "Stele $("$prefix/bin/stele" --version | cut -d' ' -f2) is installed in $prefix."
if [ "$systemd" = yes ]; then
    sed "s|^ExecStart=[^ ]*|ExecStart=$prefix/bin/stele|" "$here/stele.service" >"$unit"
    echo "Start it with: systemctl daemon-reload && systemctl enable --now stele"
else
    case :$PATH: in
    *":$prefix/bin:"*) echo "Start it with: stele serve" ;;
    *) echo "Start it with: $prefix/bin/stele serve (its directory is not in your PATH)" ;;
    esac
fi
