# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# The demonstration. `make demo SHELL=1` uses the name of make's own variable for the shell of recipes: take the word away
# from make, and from the makes below it, before a recipe is run by a shell called "1".
ifeq ($(origin SHELL),command line)
demo-shell := $(SHELL)
override SHELL := /bin/sh
MAKEOVERRIDES := $(filter-out SHELL=%,$(MAKEOVERRIDES))
endif

.PHONY: demo
demo: ## Two guests on Debian's kernel, one fabric, ib0 up, ping (SHELL=1: leave them running, with a prompt; CARD=mlx5 or mthca: one has another card; CARD=amso1100: RNICs on an Ethernet)
	@scripts/demo $(if $(filter-out 0,$(demo-shell)),--shell) $(if $(CARD),--card "$(CARD)")
