# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the targets for tests and benchmarks, and the targets that prepare and clean up the host. ONLY=REGEX selects tests by full name.
.PHONY: test test-debug selftest mutate fuzz bench doctor
test: ## Everything that must pass: host tests, KUnit suites, guest tests (ONLY=REGEX selects)
	@ONLY='$(ONLY)' scripts/test

test-debug: ## KUnit suites and guest tests on the kernel with KASAN, lockdep and kmemleak
	@ONLY='$(ONLY)' scripts/test --debug

selftest: ## Inject defects, and check that the tests report each of them
	@scripts/test-selftest

mutate: ## Break one rule after another in a copy of the tree, and check that the test of each rule fails
	@ONLY='$(ONLY)' scripts/mutate

fuzz: ## Ten million inputs for every fuzz target (INPUTS=N, ONLY=NAME)
	@scripts/fuzz --inputs $(or $(INPUTS),10000000) $(ONLY)

bench: ## Measure weft and its references (ONLY=NAME selects)
	@ONLY='$(ONLY)' scripts/bench

doctor: ## Show what this host lacks, and how to get it
	@scripts/doctor
