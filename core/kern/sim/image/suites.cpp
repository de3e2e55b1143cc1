// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A part of the object that the kernel half is linked into: the bounds of the section that
// KUNIT_SUITE puts suites into, which the linker names for that object alone.
extern "C" const void *const __start_sim_suites[];
extern "C" const void *const __stop_sim_suites[];

extern "C" const void *const *const sim_suites_begin;
extern "C" const void *const *const sim_suites_end;
const void *const *const sim_suites_begin = __start_sim_suites;
const void *const *const sim_suites_end = __stop_sim_suites;
