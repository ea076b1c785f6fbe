#!/usr/bin/env bash
# Installs the system packages that a target needs, as root; as an ordinary user it names the command that does.
# Usage: scripts/need.sh serve|test
#        scripts/need.sh node   installs nothing; succeeds where the console can be built
set -euo pipefail

if [ "${1:-serve}" = node ]; then
    command -v npm >/dev/null 2>&1 && node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null
    exit
fi

missing=()
need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}

need cc gcc
if [ "${1:-serve}" = test ]; then
    need python3 python3
    python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)
    need node nodejs
    need npm npm
    # The console is looked at in a real browser.
    command -v chromium-browser >/dev/null 2>&1 || need chromium chromium
    need strace strace
    # Real mounts, and the sandboxes that they show up in.
    need fusermount3 fuse3
    need bwrap bubblewrap
    # What saves files on a mount, each in its own way, and the histories that are taken in and out.
    for tool in ed git perl rsync vim; do need "$tool" "$tool"; done
    # The tests start a PostgreSQL of their own.
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || need initdb postgresql
fi

if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
    else
        echo "Missing: ${missing[*]}. Install with: sudo apt-get install ${missing[*]}" >&2
        exit 1
    fi
fi

if ! command -v cargo >/dev/null 2>&1 && [ ! -x "$HOME/.cargo/bin/cargo" ]; then
    echo "Missing: Rust 1.95 or newer. Install it as https://rustup.rs says, then run this again." >&2
    exit 1
fi
