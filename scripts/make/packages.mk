# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Builds the Debian packages. scripts/packages/packages.list lists the Debian packages that are needed for this.
.PHONY: packages dist
packages: ## Build the Debian packages weft and weft-dkms, into build/packages
	@rm -f build/packages/*.deb
	+@DEB_RULES_REQUIRES_ROOT=no debian/rules binary
	@debian/rules clean >/dev/null
	@ls build/packages/*.deb

dist: ## Write the sources as build/dist/weft-VERSION.tar.xz, which builds without git
	@scripts/make/dist
