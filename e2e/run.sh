#!/usr/bin/env bash
# The end-to-end tests: the official SDKs, unmodified, and real mounts, against the built binary.
#
#   e2e/run.sh [arguments for pytest]
#
# STELE_BIN names the binary (default: target/debug/stele). Works as root and as an ordinary user; as root it also
# tests a full disk. Leaves behind nothing but the Python environment and node_modules, for the next run.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
venv=$root/.venv
export STELE_BIN
STELE_BIN=$(realpath "${STELE_BIN:-$root/target/debug/stele}")
export NO_PROXY="127.0.0.1,localhost${NO_PROXY:+,$NO_PROXY}"
export no_proxy=$NO_PROXY

fail() {
  echo "e2e: $*" >&2
  exit 2
}

prepare_python() {
  command -v python3 >/dev/null || fail "python3 is missing: apt-get install -y python3 python3-venv"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed"
  if ! "$venv/bin/python" -c '' 2>/dev/null; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || fail "python3-venv is missing: apt-get install -y python3-venv"
    python3 -m venv --clear "$venv" || fail "$venv cannot be made or used by $(id -un)"
  fi
  if ! cmp -s "$here/requirements.txt" "$venv/e2e-requirements.txt"; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/e2e-requirements.txt"
  fi
}

prepare_node() {
  command -v node >/dev/null && command -v npm >/dev/null || fail "Node 20 or newer with npm is needed (https://nodejs.org)"
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' || fail "Node 20 or newer is needed"
  # npm writes this copy of the lock file when it is done.
  if [ "$here/typescript/package-lock.json" -nt "$here/typescript/node_modules/.package-lock.json" ]; then
    npm ci --prefix "$here/typescript" --no-audit --no-fund --loglevel=error
  fi
}

start_server() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  env -u STELE_URL -u STELE_API_KEY "$STELE_BIN" serve --data-dir "$work/data" --listen "127.0.0.1:$port" >"$work/server.log" 2>&1 &
  server=$!
  export STELE_URL=http://127.0.0.1:$port
  for _ in $(seq 100); do
    if python3 -c "import urllib.request as u; u.urlopen('$STELE_URL/readyz', timeout=2)" 2>/dev/null; then
      STELE_API_KEY=$(cat "$work/data/admin-key")
      export STELE_API_KEY
      return
    fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$work/server.log" >&2
  fail "the server did not become ready"
}

stop_server() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
  fi
}

run_typescript() {
  start_server
  local status=0
  (cd "$here/typescript" && env "${without_anthropic[@]}" node --test --test-reporter=spec) || status=$?
  stop_server
  return "$status"
}

# The console in a real browser, from the pages that `make console` built.
run_console() {
  [ -e "$root/console/dist/index.html" ] || fail "the console is not built: make console"
  local chromium
  chromium=$(command -v chromium || command -v chromium-browser) || fail "chromium is missing: apt-get install -y chromium"
  CHROMIUM=$chromium node --test --test-reporter=spec "$here"/console/*.test.mjs
}

# The folders of Python tests: both dialects and the mount, unless an argument names a file that only some of them have.
python_folders() {
  local folder argument
  for folder in anthropic recursion mount; do
    for argument in "$@"; do
      case $argument in test_*) [ -e "$here/$folder/${argument%%::*}" ] || continue 2 ;; esac
    done
    echo "$folder"
  done
}

run_python() {
  local folder=$1 status=0
  shift
  # Compiled files would land in a tree that may belong to somebody else.
  (cd "$here/$folder" && PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m pytest -p no:cacheprovider --quiet "$@") \
    | tee "$work/$folder.log" || status=$?
  closing+="e2e: pytest, $folder: $(tail -n 1 "$work/$folder.log")"$'\n'
  return "$status"
}

[ -x "$STELE_BIN" ] || fail "no stele binary at $STELE_BIN: cargo build --bin stele, or set STELE_BIN"
prepare_python
prepare_node

# A developer's own account must not leak into the SDK.
without_anthropic=()
for name in "${!ANTHROPIC_@}"; do without_anthropic+=(-u "$name"); done

work=$(mktemp -d)
server=
trap 'stop_server; rm -rf "$work"' EXIT

failed=()
run_typescript || failed+=(typescript)
# Arguments are for pytest: who names a test wants that one.
[ $# -gt 0 ] || run_console || failed+=(console)
closing=
for folder in $(python_folders "$@"); do run_python "$folder" "$@" || failed+=("$folder"); done
printf %s "$closing"
[ ${#failed[@]} -eq 0 ] || { echo "e2e: failed: ${failed[*]}"; exit 1; }
echo "e2e: all passed"
