# Every habit is one word. `make help` lists them.
.PHONY: help test format lint docs deny audit bench faults fuzz

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

test: format lint docs ## everything CI runs: format, lints, docs without warnings, all tests
	cargo test -p quell-cli -p quell --features exact-statistics --test neighbouring
	cargo test --workspace --all-targets
	cargo test --workspace --doc

format: ## rustfmt has nothing to say
	cargo fmt --all --check

lint: ## clippy pedantic has nothing to say
	cargo clippy --workspace --all-targets -- -D warnings

docs: ## rustdoc has nothing to say
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

deny: ## licences and advisories of the dependencies (installs cargo-deny if it is missing)
	cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	cargo deny check

audit: ## accountants against each other on QUELL_AUDIT_CASES random events (100,000 unless told otherwise), from number QUELL_AUDIT_FROM on
	QUELL_AUDIT_CASES=$${QUELL_AUDIT_CASES:-100000} cargo test -p quell-privacy --test accountants -- --nocapture

faults: ## kill, corrupt and fill up ledgers for longer than `make test` does (QUELL_FAULT_ROUNDS rounds of killing)
	QUELL_FAULT_ROUNDS=$${QUELL_FAULT_ROUNDS:-2000} cargo test -p quell-ledger --test faults -- --nocapture

fuzz: ## every reader of files on FUZZ_RUNS random inputs each, a million unless told otherwise (installs cargo-fuzz if it is missing)
	fuzz/run

bench: ## training, neighbours, noise, ledger and accountant beside their peers, each in one run (installs the peers into scratch environments)
	python3 benches/training.py
	python3 benches/neighbors.py
	python3 benches/noise.py
	cargo run --release -p quell-ledger --example bench_ledger
	python3 benches/accounting.py
