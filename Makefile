# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Provides common targets for the two build systems: Kbuild for the kernel modules, CMake for the host side.
.DEFAULT_GOAL := all
include $(wildcard scripts/make/*.mk)

.PHONY: all
all: modules tools ## Build the modules against the installed headers, and the host side

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z_-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
