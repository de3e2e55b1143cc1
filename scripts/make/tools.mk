# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# The host side. Ninja decides what is out of date, so the target is always handed to it.
build/tools/build.ninja: tools/CMakeLists.txt
	cmake -S tools -B build/tools -G Ninja

copy-programs = mkdir -p build/bin; if [ -d build/tools/bin ]; then cp -u build/tools/bin/* build/bin/; fi

.PHONY: tools programs
tools: build/tools/build.ninja ## Build weftd, weft and their libraries; programs in build/bin
	cmake --build build/tools
	@$(copy-programs)

programs: build/tools/build.ninja ## Build weftd and weft alone, without their tests
	cmake --build build/tools --target weftd weft
	@$(copy-programs)
