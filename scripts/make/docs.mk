# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Renders the documents. Warnings are errors, so that no page is published that Sphinx cannot parse.
.PHONY: docs html
html: docs
docs: ## Render Documentation/ and the kernel-doc of the public headers into build/docs/html
	@sphinx-build -q -W --keep-going -b html -d build/docs/doctrees Documentation build/docs/html
	@echo "build/docs/html/index.html"
