# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Builds the user-space programs in tools/, such as weftd and weft. Make always runs Ninja, which
# decides what is out of date.
build/tools/build.ninja: tools/CMakeLists.txt
	cmake -S tools -B build/tools -G Ninja

copy-programs = mkdir -p build/bin build/lib/weft; if [ -n "$$(ls -A build/tools/bin 2>/dev/null)" ]; then cp -u build/tools/bin/* build/bin/; fi; \
	if [ -e build/tools/lib/weft/libibumad.so.3 ]; then cp -u build/tools/lib/weft/libibumad.so.3 build/lib/weft/; fi

.PHONY: tools programs programs-explore
tools: build/tools/build.ninja ## Build weftd, weft and their libraries; programs in build/bin (TARGETS= for a part)
	cmake --build build/tools $(if $(TARGETS),--target $(TARGETS))
	@$(copy-programs)

programs: build/tools/build.ninja ## Build only weftd and weft, without their tests
	cmake --build build/tools --target weftd weft weft_ibumad
	@$(copy-programs)

programs-explore: build/tools/build.ninja ## Build weft-explore, which finds races in the kernel half
	cmake --build build/tools --target weft-explore
	@$(copy-programs)
