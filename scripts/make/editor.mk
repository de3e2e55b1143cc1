# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# For editors and analysers.
.PHONY: compile_commands.json tidy
compile_commands.json: modules build/tools/build.ninja ## How each source is compiled, modules and host side, for clangd and clang-tidy
	@$(kbuild) "$(KDIR)" --compile-commands

# Minutes on each CPU. PATHS is a regular expression of the files to look at.
tidy: compile_commands.json ## Look at all sources by clang-tidy (PATHS=REGEX: at some)
	@run-clang-tidy-19 -quiet -p . -j "$$(nproc)" '$(or $(PATHS),$(CURDIR)/(core|hw|ulp|tools)/)'
