# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#
# Defines the rule that compiles C++ objects, which Kbuild lacks. It derives its flags from those of a C object, so that mitigations, sanitizers and
# the hooks of the function tracer are inherited, and ends with the same steps: fixdep for dependencies, weft's check of the object (check-object),
# and objtool.
#
# Kbuild runs make with -rR, which leaves CXX undefined. The compiler's variable is called kxx, because a later version of Kbuild might define CXX.
kxx := $(subst gcc,g++,$(filter-out ccache,$(CC)))
kxx-launcher := $(if $(shell command -v ccache),ccache)

# Options that the kernel gives its C compiler and that a C++ compiler refuses or warns about.
kxx-c-only := -std=% -Wstrict-prototypes -Wmissing-prototypes -Wmissing-declarations \
	-Wold-style-definition -Wdeclaration-after-statement -Wno-pointer-sign -Wenum-conversion \
	-Wno-override-init -Wno-alloc-size-larger-than -Wimplicit-fallthrough=5 \
	-Werror=strict-prototypes -Werror=implicit-function-declaration -Werror=implicit-int \
	-Werror=incompatible-pointer-types -Werror=designated-init \
	-Wno-maybe-uninitialized -fconserve-stack

# Only the compiler's own headers, behind our two stand-ins for the C library.
kxx-system := $(shell $(kxx) -E -v -x c++ /dev/null 2>&1 | \
	awk '/^\#include </ {on = 1; next} /^End of/ {on = 0} on && /c\+\+|lib\/gcc/ {print $$1}')
kxx-include := -nostdinc -isystem $(weft)/scripts/make/kbuild/libc $(addprefix -isystem ,$(kxx-system))

# No .cold halves of functions: objtool finds the whole by the half's name, and gives up on names over 128 characters.
# The enumerations of the public headers are C's: a caller may put any number into one, and the callee checks it. The compiler takes
# no advantage of them either (there is no -fstrict-enums).
# From GCC 15 on, {} clears only the first member of a union by default. This option clears the whole union, so that programs never see old contents.
kxx-language := -std=gnu++20 -fno-reorder-blocks-and-partition -ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics \
	-fno-use-cxa-atexit -fno-unwind-tables -fno-asynchronous-unwind-tables -fvisibility-inlines-hidden \
	-fno-gnu-unique -fno-sanitize=enum $(call cc-option,-fzero-init-padding-bits=unions)
kxx-warnings := -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers -Wno-invalid-offsetof \
	-Wnon-virtual-dtor \
	-Wsuggest-override -Wimplicit-fallthrough -Wdeprecated-copy-dtor

kxx_flags = -Wp,-MMD,$(abspath $(depfile)) $(kxx-include) -I$(weft)/include -D__KERNEL__ \
	-include $(srctree)/include/linux/compiler-version.h -include $(srctree)/include/linux/kconfig.h \
	-I$(objtree)/include $(filter-out $(kxx-c-only),$(_c_flags) $(modkern_cflags)) \
	$(basename_flags) $(modname_flags) $(kxx-language) $(kxx-warnings) $(cxxflags-y) $(CXXFLAGS_$(target-stem).o)

# An inline function that two objects of a module emit is one COMDAT group in each, and the linker drops the second, yet not
# what objtool wrote about it elsewhere in the object: so the groups are undone, and the weak symbols resolve to the first copy.
# Our check comes before objtool, which has only a vague idea of what is wrong with a call of abort().
kxx-check = NM="$(NM)" READELF="$(READELF)" $(weft)/scripts/make/kbuild/check-object $@

# The compiler runs in the tree, and what the kernel names relative to its own folder is made absolute, so that the same source is compiled by
# the same words wherever the tree is: a second copy of it (a clone, a mutant) finds its objects in ccache's store. What ccache makes
# relative to the tree is made absolute again for make, which runs in the kernel's folder.
kxx-absolute = $(patsubst ./%,$(CURDIR)/%,$(patsubst -I./%,-I$(CURDIR)/%,$(1)))
kxx-depfile = sed -i -E 's,(^| )(build|core|hw|include|scripts|ulp)/,\1$(weft)/\2/,g' $(depfile)

quiet_cmd_kxx_o_cpp = CXX $(quiet_modtag) $@
      cmd_kxx_o_cpp = cd $(weft); $(kxx-launcher) $(kxx) $(call kxx-absolute,$(kxx_flags)) -c -o $(abspath $@) $(abspath $<); cd $(CURDIR); $(kxx-depfile); \
	$(OBJCOPY) -R .group $@; $(kxx-check) $(cmd_objtool)

define rule_kxx_o_cpp
	$(call cmd_and_fixdep,kxx_o_cpp)
	$(call cmd,gen_objtooldep)
	$(call cmd,record_mcount)
endef

# Kernels from 6.13 on build other people's modules in the folder of the objects, by paths relative to it, which no pattern with an
# absolute one of the sources matches: there make looks for them in a path.
ifeq ($(obj),.)
VPATH += $(weft)
kxx-src := $(obj)
else
kxx-src := $(weft)
endif

$(obj)/%.o: $(kxx-src)/%.cpp FORCE
	$(call if_changed_rule,kxx_o_cpp)

quiet_cmd_kxx_s_cpp = CXX $(quiet_modtag) $@
      cmd_kxx_s_cpp = $(kxx) $(filter-out $(DEBUG_CFLAGS),$(kxx_flags)) -fverbose-asm -S -o $@ $<

$(obj)/%.s: $(kxx-src)/%.cpp FORCE
	$(call if_changed_dep,kxx_s_cpp)

# Kernels from 6.10 on look for C sources in the object directory only, and from 6.13 on in that path; before, these are the rules there are.
ifneq ($(obj),.)
$(obj)/%.o: $(weft)/%.c FORCE
	$(call if_changed_rule,cc_o_c)
$(obj)/%.s: $(weft)/%.c FORCE
	$(call if_changed_dep,cc_s_c)
endif
