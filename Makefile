# Two commands for a fresh machine: `make serve` and `make test`. The others are for those who work on Stele.
SHELL := bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
BIN := $(CURDIR)/target/debug/stele

.PHONY: serve build test test-long lint test-rust test-e2e bench bench-postgres

# Builds Stele and starts it on its embedded database.
serve:
	@scripts/need.sh serve
	cargo build --release --locked --bin stele
	exec target/release/stele serve $(ARGS)

# Everything that CI runs.
test:
	@scripts/need.sh test
	$(MAKE) lint
	$(MAKE) test-rust
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

test-rust:
	cargo test --workspace --locked

test-e2e: build
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
