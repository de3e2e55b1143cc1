# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# Generates kern/layout.h from core/kern/linux/layout.c: the sizes, alignments and offsets of kernel types in the
# configuration of this kernel, for C++ code, which cannot include the kernel's headers.
layout := $(obj)/generated/kern/layout.h

targets += core/kern/linux/layout.s generated/kern/layout.h

$(layout): $(obj)/core/kern/linux/layout.s FORCE
	$(call filechk,offsets,__KERN_LAYOUT_H__)

# When the file exists, fixdep records which objects depend on it.
$(weft-objects): | $(layout)
