# Two commands for a fresh machine: `make serve` and `make test`. The others are for those who work on Stele.
SHELL := bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
BIN := $(CURDIR)/target/debug/stele

.PHONY: serve build test test-long lint console lint-console test-rust test-console test-e2e bench bench-postgres

# Builds Stele and starts it on its embedded database.
serve:
	@scripts/need.sh serve
	@if scripts/need.sh node; then $(MAKE) --no-print-directory console; else echo "The console is left out: it is made with Node.js 20 or newer and npm."; fi
	cargo build --release --locked --bin stele
	exec target/release/stele serve $(ARGS)

# Everything that CI runs.
test:
	@scripts/need.sh test
	$(MAKE) lint
	$(MAKE) lint-console
	$(MAKE) test-rust
	$(MAKE) test-console
	$(MAKE) test-e2e

# What takes over a minute a test.
test-long: build
	STELE_BIN=$(BIN) STELE_KILL_ROUNDS=200 e2e/run.sh -m "long or not long"

build:
	cargo build --locked --bins

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny check; else echo "cargo-deny is not installed: licences and advisories not checked"; fi

# The console's pages, into console/dist, where the binary finds them; anew only when their sources changed.
console: console/dist/index.html

console/dist/index.html: console/node_modules/.package-lock.json console/index.html console/vite.config.ts $(shell find console/src console/public -type f ! -name '*.test.ts' ! -name schema.d.ts)
	npm run --prefix console build

console/node_modules/.package-lock.json: console/package-lock.json
	npm ci --prefix console --no-audit --no-fund --loglevel=error

lint-console: console/node_modules/.package-lock.json
	npm run --prefix console check
	npm run --prefix console lint

test-console: console/node_modules/.package-lock.json
	npm run --prefix console test

test-rust:
	cargo test --workspace --locked

test-e2e: console build
	STELE_BIN=$(BIN) e2e/run.sh

-include dist/dist.mk

# Ratios to what this machine can do; see benches/RESULTS.md. Wants an idle machine.
bench:
	cargo build --release --locked --package stele --package stele-bench
	target/release/stele-bench target/release/stele $(SEED)

# The same for PostgreSQL, on a throw-away one.
bench-postgres:
	cargo build --release --locked --package stele --package stele-bench
	target/release/stele-bench target/release/stele $(or $(SEED),1) postgres
