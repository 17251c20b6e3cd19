# Every habit is one word. `make help` lists them.
.PHONY: help test check format lint docs book deny semver audit bench faults fuzz screenshots

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# A build from nothing is faster without files for incremental builds and without line numbers in backtraces.
test: export CARGO_INCREMENTAL = 0
test: export CARGO_PROFILE_DEV_DEBUG = 0
test: format lint docs ## everything that CI runs: format, lints, documentation, all tests
	cargo test --workspace --features quell/exact-statistics,quell-cli/exact-statistics --test neighbouring
	cargo test --workspace --all-targets
	@mkdir -p target && printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$$@"\n' > target/rustdoc-with-codes && chmod +x target/rustdoc-with-codes
	RUSTDOC=$(CURDIR)/target/rustdoc-with-codes cargo test --workspace --doc

check: format ## the inner loop: format, lints of the libraries and the command, unit tests
	cargo clippy --workspace -- -D warnings
	cargo test --workspace --lib --bins

format: ## check the format of the code
	cargo fmt --all --check

lint: ## run clippy with pedantic lints
	cargo clippy --workspace --all-targets -- -D warnings

docs: ## build the documentation without warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

book: ## the guide as a book, in target/book (installs mdbook if it is missing)
	mdbook --version >/dev/null 2>&1 || cargo install --locked mdbook
	mdbook build docs

deny: ## check licences and advisories of the dependencies (installs cargo-deny if it is missing)
	cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	cargo deny check

semver: ## compare the public API with that of revision BASE, origin/main by default (installs cargo-semver-checks if it is missing)
	cargo semver-checks --version >/dev/null 2>&1 || cargo install --locked cargo-semver-checks
	cargo semver-checks --workspace --exclude quell-cli --baseline-rev $${BASE:-origin/main}

audit: ## compare accountants on QUELL_AUDIT_CASES random events (100,000 by default), starting at number QUELL_AUDIT_FROM
	QUELL_AUDIT_CASES=$${QUELL_AUDIT_CASES:-100000} cargo test -p quell-privacy --test all accountants -- --nocapture

faults: ## kill, corrupt and fill up ledgers for QUELL_FAULT_ROUNDS rounds, more than `make test` does
	QUELL_FAULT_ROUNDS=$${QUELL_FAULT_ROUNDS:-2000} cargo test -p quell-ledger --test all faults -- --nocapture

screenshots: ## draw the pictures of docs anew, in an installed Chromium
	QUELL_UPDATE_SCREENSHOTS=1 cargo test -p quell-cli --test all screenshots

fuzz: ## run every file reader on FUZZ_RUNS random inputs, a million by default (installs cargo-fuzz if it is missing)
	fuzz/run

bench: ## measure training, neighbours, noise, ledger and accountant beside their peers (installs the peers); tables, estimators, clusters, synthetic data and recommendations, if QUELL_DATA names the folder of the data
	python3 benches/training.py
	test -z "$$QUELL_DATA" || python3 benches/tables.py
	test -z "$$QUELL_DATA" || python3 benches/tables.py --untuned
	test -z "$$QUELL_DATA" || python3 benches/clusters.py
	test -z "$$QUELL_DATA" || python3 benches/estimators.py
	test -z "$$QUELL_DATA" || python3 benches/synthesis.py
	test -z "$$QUELL_DATA" || python3 benches/recommendations.py
	python3 benches/export.py
	python3 benches/neighbors.py
	python3 benches/noise.py
	cargo run --release -p quell-ledger --example bench_ledger
	python3 benches/accounting.py
