// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the bounds of the section in which KUNIT_SUITE places suites. It is part of the object
// into which weft's modules are linked; the linker defines these symbols for that object only.
extern "C" const void *const __start_sim_suites[];
extern "C" const void *const __stop_sim_suites[];

extern "C" const void *const *const sim_suites_begin;
extern "C" const void *const *const sim_suites_end;
const void *const *const sim_suites_begin = __start_sim_suites;
const void *const *const sim_suites_end = __stop_sim_suites;
