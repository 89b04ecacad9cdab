# The front door. `make help` says what there is.

.DEFAULT_GOAL := help
.SILENT:
.NOTPARALLEL:
.PHONY: help test tools fmt lint unit doc tidy fix soak

# What CI builds is exactly what Cargo.lock says.
LOCKED := $(if $(CI),--locked)
# What to check; `make test SCOPE='-p holdfast-locktable'` checks one crate the way CI checks all.
SCOPE := --workspace
NEXTEST := cargo nextest run $(LOCKED) --cargo-quiet --show-progress none

help: ## Say what there is
	awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: tools fmt lint unit doc ## Everything CI checks, cheapest first; stops at the first stage that fails
	echo '== all checks passed'

tools: ## Install what the tests need and this machine lacks
	.ci/tools

fmt:
	echo '== format (make fix repairs it)'
	cargo fmt --all --check

lint:
	echo '== clippy'
	cargo clippy $(LOCKED) --quiet $(SCOPE) --all-targets -- -D warnings

unit:
	echo '== tests'
	$(NEXTEST) $(SCOPE)

doc:
	echo '== doc tests'
	cargo test $(LOCKED) --quiet $(SCOPE) --doc

tidy: ## Only the layout rules, within seconds
	$(NEXTEST) --package holdfast-tidy

fix: ## Format, and let clippy repair what it can
	cargo clippy --quiet $(SCOPE) --all-targets --fix --allow-dirty --allow-staged
	cargo fmt --all

soak: tools ## The long forms of all tests: hours, by hand
	HOLDFAST_SOAK=1 $(NEXTEST) $(SCOPE) --profile soak
