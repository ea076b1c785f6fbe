# What is shipped, and the fuzzing of the HTTP interface by its own description.
.PHONY: dist test-dist schemathesis

# Makes target/dist/stele-<version>-<arch>.tar.gz.
dist:
	dist/build.sh

# Packs the debug binary, installs and uninstalls it in a scratch directory.
test-dist: build
	dist/test.sh $(BIN)

# SECONDS_LONG=600 make schemathesis
schemathesis: build
	STELE=$(BIN) e2e/schemathesis.sh
