# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# Sizes, alignments and offsets of the kernel's own types, as this kernel was configured, for C++ which cannot read
# the kernel's headers: core/kern/linux/layout.c becomes generated/kern/layout.h.
layout := $(obj)/generated/kern/layout.h

targets += core/kern/linux/layout.s generated/kern/layout.h

$(layout): $(obj)/core/kern/linux/layout.s FORCE
	$(call filechk,offsets,__KERN_LAYOUT_H__)

# Once it exists, fixdep knows who reads it.
$(weft-objects): | $(layout)
