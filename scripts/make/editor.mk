# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines targets for editors and static analysers: compile_commands.json and clang-tidy.
.PHONY: compile_commands.json tidy
compile_commands.json: modules ## How each source is compiled, modules and host side, for clangd and clang-tidy
	@cmake -S tools -B build/editor -G Ninja -DWEFT_UNITY=OFF >/dev/null # the programs' tree compiles several sources together
	@$(kbuild) "$(KDIR)" --compile-commands

# Takes minutes. PATHS is a regular expression that selects files. The modules must pass all checks, the host half only those of names.
tidy: check-names compile_commands.json ## Check the names of both halves, and the modules' sources with all checks of clang-tidy (PATHS=REGEX selects other sources)
	@command -v run-clang-tidy-19 >/dev/null || { echo "make tidy: scripts/setup"; exit 1; }
	@run-clang-tidy-19 -quiet -p . -j "$$(nproc)" '$(or $(PATHS),$(CURDIR)/(core|hw|ulp)/)'
