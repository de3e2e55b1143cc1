# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Runs the demonstration. SHELL in `make demo SHELL=1` is also make's variable for the shell of recipes. Here it is removed from make's
# variables, so that neither this make nor those that it starts run recipes by a shell called "1".
ifeq ($(origin SHELL),command line)
demo-shell := $(SHELL)
override SHELL := /bin/sh
MAKEOVERRIDES := $(filter-out SHELL=%,$(MAKEOVERRIDES))
endif

.PHONY: demo
demo: ## Two guests on Debian's kernel, one fabric, ib0 up, ping (SHELL=1: leave them running, with a prompt; CARD=mlx5 or mthca: one has another card; CARD=amso1100: RNICs on an Ethernet)
	@scripts/demo $(if $(filter-out 0,$(demo-shell)),--shell) $(if $(CARD),--card "$(CARD)")
