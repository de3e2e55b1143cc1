# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# The host side. Ninja decides what is out of date, so the target is always handed to it.
build/tools/build.ninja: tools/CMakeLists.txt
	cmake -S tools -B build/tools -G Ninja

.PHONY: tools
tools: build/tools/build.ninja ## Build weftd, weft and their libraries; programs in build/bin
	cmake --build build/tools
	@mkdir -p build/bin
	@if [ -d build/tools/bin ]; then cp -u build/tools/bin/* build/bin/; fi
