#!/bin/sh
# Lets schemathesis loose on a fresh server by its own /openapi.json, for SECONDS_LONG seconds (60 where not given).
# STELE names the binary. What is left out, and why, stands in schemathesis.toml beside this file.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
stele=${STELE:-$root/target/debug/stele}
work=$(mktemp -d)
# Not in .venv, which e2e/run.sh makes anew where it does not suit it.
venv=$root/target/schemathesis
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

[ -x "$venv/bin/schemathesis" ] || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q 'schemathesis>=4.32,<5'
}
STELE_DATA_DIR="$work/data" STELE_LOG=warn "$stele" serve --listen 127.0.0.1:0 >"$work/out" 2>"$work/log" &
server=$!
tries=0
until grep -qs 'ready at' "$work/out"; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] && kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/^Stele is ready at //p' "$work/out")
# In a directory of its own: schemathesis keeps what it found where it runs.
cd "$work"
status=0
try() {
    "$venv/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$url/openapi.json" \
        --header "Authorization: Bearer $(cat data/admin-key)" \
        --continue-on-failure --no-color ${SEED:+--seed "$SEED"} "$@" || status=1
}
# Revoking comes apart and last: let loose on all together, schemathesis lists the keys and revokes its own.
try --exclude-operation-id revoke_api_key --max-time "${SECONDS_LONG:-60}"
try --include-operation-id revoke_api_key --phases coverage,fuzzing --max-time 10
if grep -E 'WARN|ERROR' log >&2; then
    echo "the server complained, see above" >&2
    status=1
fi
exit "$status"
