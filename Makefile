# Every habit is one word. `make help` lists them.
.PHONY: help test test-python test-frameworks python check format lint docs book deny semver audit bench faults fuzz screenshots

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# A build from nothing is faster without files for incremental builds and without line numbers in backtraces.
test: export CARGO_INCREMENTAL = 0
test: export CARGO_PROFILE_DEV_DEBUG = 0
test: format lint docs ## everything that CI runs: format, lints, documentation, all tests
	cargo test --workspace --features quell/exact-statistics,quell-cli/exact-statistics --test neighbouring
	cargo test --workspace --all-targets
	@mkdir -p target && printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$$@"\n' > target/rustdoc-with-codes && chmod +x target/rustdoc-with-codes
	RUSTDOC=$(CURDIR)/target/rustdoc-with-codes cargo test --workspace --doc
	$(MAKE) test-python

# What Python needs is installed here, and nowhere else.
PYTHON_ENV := $(CURDIR)/target/python-env
PYTHON_REQUIREMENTS := crates/quell-python/tests/requirements.txt
IN_PYTHON_ENV := VIRTUAL_ENV=$(PYTHON_ENV) PATH=$(PYTHON_ENV)/bin:$$PATH

$(PYTHON_ENV)/ready: $(PYTHON_REQUIREMENTS)
	python3 -m venv $(PYTHON_ENV)
	$(PYTHON_ENV)/bin/pip install --quiet --disable-pip-version-check -r $(PYTHON_REQUIREMENTS)
	@touch $@

# The wheel of the tests.
PYTHON_WHEEL := target/python-wheels
$(PYTHON_WHEEL): export CARGO_INCREMENTAL = 0
$(PYTHON_WHEEL): export CARGO_PROFILE_DEV_DEBUG = 0
$(PYTHON_WHEEL): $(PYTHON_ENV)/ready $(shell find crates -name '*.rs' -o -name '*.toml' -o -name '*.pyi' -o -name '*.py' -not -path '*/tests/*')
	rm -rf $@ && cd crates/quell-python && $(IN_PYTHON_ENV) maturin build --locked --out $(CURDIR)/$@

test-python: $(PYTHON_WHEEL) ## build the Python package into target/python-env, and run its tests, types and documentation
	$(PYTHON_ENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(PYTHON_WHEEL)/*.whl
	cd crates/quell-python && $(PYTHON_ENV)/bin/python -m mypy --strict -p quell --cache-dir $(CURDIR)/target/mypy
	cd crates/quell-python && $(PYTHON_ENV)/bin/python -m mypy.stubtest quell._native --allowlist tests/stubtest-allowlist.txt
	$(PYTHON_ENV)/bin/python -m pytest -q -c crates/quell-python/pyproject.toml --rootdir crates/quell-python crates/quell-python/tests --ignore crates/quell-python/tests/frameworks
	$(PYTHON_ENV)/bin/python -m pdoc --output-directory target/python-docs quell

# A torch without CUDA is a tenth as large: name an index that has it with TORCH_INDEX=…
FRAMEWORKS_ENV := $(CURDIR)/target/frameworks-env
FRAMEWORKS := crates/quell-python/tests/frameworks
TORCH := torch==2.15.0
FRAMEWORKS_PIP := $(FRAMEWORKS_ENV)/bin/pip install --quiet --disable-pip-version-check

$(FRAMEWORKS_ENV)/ready: $(FRAMEWORKS)/requirements.txt
	python3 -m venv $(FRAMEWORKS_ENV)
	$(FRAMEWORKS_PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	$(FRAMEWORKS_PIP) -r $(FRAMEWORKS)/requirements.txt
	$(FRAMEWORKS_PIP) --no-deps opacus==1.6.0
	@touch $@

test-frameworks: $(FRAMEWORKS_ENV)/ready $(PYTHON_WHEEL) ## install PyTorch and JAX into target/frameworks-env, and test quell.torch and quell.jax
	$(FRAMEWORKS_PIP) --force-reinstall --no-deps $(PYTHON_WHEEL)/*.whl
	cd crates/quell-python && $(FRAMEWORKS_ENV)/bin/python -m mypy --strict -p quell.torch -p quell.jax --follow-imports silent --cache-dir $(CURDIR)/target/mypy-frameworks
	$(FRAMEWORKS_ENV)/bin/python -m pytest -q -c crates/quell-python/pyproject.toml --rootdir crates/quell-python $(FRAMEWORKS)
	cd target && $(FRAMEWORKS_ENV)/bin/python $(CURDIR)/examples/python/own_module_of_pytorch.py

python: $(PYTHON_ENV)/ready ## build a fast wheel of the Python package in target/wheels
	cd crates/quell-python && $(IN_PYTHON_ENV) maturin build --release --locked --out $(CURDIR)/target/wheels
	@ls $(CURDIR)/target/wheels

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

bench: ## measure training, modules of PyTorch, neighbours, noise, ledger and accountant beside their peers (installs the peers); tables, estimators, clusters, synthetic data and recommendations, if QUELL_DATA names the folder of the data
	python3 benches/training.py
	python3 benches/frameworks.py
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
	python3 benches/python.py
