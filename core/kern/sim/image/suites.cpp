// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares __start_sim_suites and __stop_sim_suites, the bounds of the section that contains the
// suites of KUNIT_SUITE. The linker defines them only in an object that refers to them. Therefore
// this file is linked into the same object as weft's modules, and exports their values.
extern "C" const void *const __start_sim_suites[];
extern "C" const void *const __stop_sim_suites[];

extern "C" const void *const *const sim_suites_begin;
extern "C" const void *const *const sim_suites_end;
const void *const *const sim_suites_begin = __start_sim_suites;
const void *const *const sim_suites_end = __stop_sim_suites;
