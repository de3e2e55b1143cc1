# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# For editors and analysers.
.PHONY: compile_commands.json tidy
compile_commands.json: modules ## How each source is compiled, modules and host side, for clangd and clang-tidy
	@cmake -S tools -B build/editor -G Ninja -DWEFT_UNITY=OFF >/dev/null # the programs' tree compiles several sources together
	@$(kbuild) "$(KDIR)" --compile-commands

# Minutes. PATHS is a regular expression of the files to look at; the modules pass, and the host side has not been gone through.
tidy: compile_commands.json ## Look at the modules' sources by clang-tidy (PATHS=REGEX: at others)
	@command -v run-clang-tidy-19 >/dev/null || { echo "make tidy: apt-get install clang-tidy-19"; exit 1; }
	@run-clang-tidy-19 -quiet -p . -j "$$(nproc)" '$(or $(PATHS),$(CURDIR)/(core|hw|ulp)/)'
