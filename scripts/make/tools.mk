# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# The host side. Ninja decides what is out of date, so the target is always handed to it.
build/tools/build.ninja: tools/CMakeLists.txt
	cmake -S tools -B build/tools -G Ninja

copy-programs = mkdir -p build/bin; if [ -n "$$(ls -A build/tools/bin 2>/dev/null)" ]; then cp -u build/tools/bin/* build/bin/; fi

.PHONY: tools programs programs-explore
tools: build/tools/build.ninja ## Build weftd, weft and their libraries; programs in build/bin (TARGETS= for a part)
	cmake --build build/tools $(if $(TARGETS),--target $(TARGETS))
	@$(copy-programs)

programs: build/tools/build.ninja ## Build weftd and weft alone, without their tests
	cmake --build build/tools --target weftd weft
	@$(copy-programs)

programs-explore: build/tools/build.ninja ## Build weft-explore, which finds races in the kernel half
	cmake --build build/tools --target weft-explore
	@$(copy-programs)
