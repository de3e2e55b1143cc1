# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Builds the kernel modules. KDIR names the kernel tree; all output of Kbuild is in build/kbuild/<kernel release>.
KDIR ?= $(shell scripts/make/kbuild/default-kdir)
kbuild := scripts/make/kbuild/run
kbuild-args = $(if $(DEBUG),WEFT_DEBUG=$(DEBUG)) $(if $(V),V=$(V)) $(if $(MODULES),WEFT_MODULES="$(MODULES)")

.PHONY: modules
modules: ## Build the modules against KDIR=; they end up in build/modules/<kernel release> (DEBUG=1: with checks; MODULES=: only these)
	+@$(kbuild) "$(KDIR)" $(kbuild-args) modules

.PHONY: modules_install
modules_install: modules ## Install the modules of KDIR= (INSTALL_MOD_PATH= for another root)
	+@$(kbuild) "$(KDIR)" $(kbuild-args) modules_install

.PHONY: check check-tree check-locks check-host-locks check-names
check: check-tree check-locks check-host-locks check-names docs ## Run all checks that need no test run: the next four targets, and docs

check-tree: ## Check layering rules, licences, layout, names in documents and Python files, and subjects of commits, in seconds and without a build
	@scripts/check

check-locks: modules ## Check the lock annotations of all modules of KDIR= with clang -Wthread-safety
	@$(kbuild) "$(KDIR)" --check-locks

check-host-locks: ## Check the lock annotations of the host half with clang -Wthread-safety
	@PYTHONPATH=scripts python3 -B -m lab.host_locks

check-names: ## Check the names of both halves with clang-tidy
	@PYTHONPATH=scripts python3 -B -m lab.naming
