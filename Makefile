# The front door. `make help` says what there is.

.DEFAULT_GOAL := help
.SILENT:
.NOTPARALLEL:
.PHONY: help test tools fmt lint unit doc simtest sim sim-again sim-shrink sim-bench mutants tidy fix soak bench

# What CI builds is exactly what Cargo.lock says.
LOCKED := $(if $(CI),--locked)
# What to check; `make test SCOPE='-p holdfast-locktable'` checks one crate the way CI checks all.
SCOPE := --workspace
NEXTEST := cargo nextest run $(LOCKED) --cargo-quiet --show-progress none
# The simulation needs a tokio that can be seeded and randomness of its own; a target folder beside the usual one keeps
# either build from undoing the other. Naming the target keeps the flags from build scripts.
SIM_TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
SIM_ENV := CARGO_TARGET_DIR=target/sim RUSTFLAGS='--cfg tokio_unstable --cfg getrandom_backend="custom"'
SIM_RUN := $(SIM_ENV) cargo run $(LOCKED) --quiet --profile sim --package holdfast-sim --target $(SIM_TARGET) --
# The same, built for thousands of seeds: a second cold build that pays from some hundred on.
SIM_HUNT := $(SIM_ENV) cargo run $(LOCKED) --quiet --profile hunt --package holdfast-sim --target $(SIM_TARGET) --
# The crates of this workspace with faults in them; what they build on stays as it is.
WITH_MUTANTS := RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/crates/sim/mutants/rustc
SEEDS := 200
FROM := 1

help: ## Say what there is
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: tools fmt lint unit doc simtest ## Everything CI checks, cheapest first; stops at the first stage that fails
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
	rm -f target/nextest/default/junit.xml
	$(NEXTEST) $(SCOPE)
	! grep 'BROKEN PROMISE' target/nextest/default/junit.xml

doc:
	echo '== doc tests'
	cargo test $(LOCKED) --quiet $(SCOPE) --doc

simtest: ## The fixed seeds of the simulation, and that a seed gives one run
	echo '== simulation'
	$(SIM_ENV) $(NEXTEST) --cargo-profile sim --package holdfast-sim --target $(SIM_TARGET)

sim: ## Simulate SEEDS=200 runs FROM=1 on, or for MINUTES=30, until one finds something
	$(SIM_RUN) hunt --seeds $(SEEDS) --from $(FROM) $(if $(MINUTES),--minutes $(MINUTES))

sim-again: ## Simulate SEED=n once more and print all that happens
	$(SIM_RUN) run --trace --seed $(SEED) $(LESS)

sim-shrink: ## Find out what the finding of SEED=n can do without
	$(SIM_HUNT) shrink --seed $(SEED)

sim-bench: SEEDS := 5000
sim-bench: ## Simulate SEEDS=5000 runs FROM=1 on over all cores, whatever they find; says how fast that was
	$(SIM_HUNT) bench --seeds $(SEEDS) --from $(FROM)

mutants: ## Put faults into the code, one after the other: the simulation must find each; writes docs/mutants.md
	echo '== the faults are in this build, and the look that must not find them elsewhere finds them here'
	$(WITH_MUTANTS) $(SIM_ENV) $(NEXTEST) --cargo-profile hunt --package holdfast-sim --target $(SIM_TARGET) --test mutants
	$(WITH_MUTANTS) $(NEXTEST) --package holdfast --test mutants
	echo '== each fault, until something finds it'
	$(WITH_MUTANTS) $(SIM_HUNT) mutants --table docs/mutants.md $(if $(ONLY),--only $(ONLY))

tidy: ## Only the layout rules, within seconds
	$(NEXTEST) --package holdfast-tidy

fix: ## Format, and let clippy repair what it can
	cargo clippy --quiet $(SCOPE) --all-targets --fix --allow-dirty --allow-staged
	cargo fmt --all

soak: tools ## The long forms of all tests: hours, by hand
	HOLDFAST_SOAK=1 $(NEXTEST) $(SCOPE) --profile soak

bench: ## Compare with etcd and Redis on this machine, 10 minutes; BENCH="--rounds 9" goes to the harness
	cargo build $(LOCKED) --quiet --release --package holdfast --package holdfast-loadtest
	loadtest/peers/install target/peers
	target/release/holdfast-loadtest bench $(BENCH)
