// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the bounds of the section that contains the suites of KUNIT_SUITE. The linker defines
// these symbols only for the object in which they are used, and weft's modules are linked into the
// same object.
extern "C" const void *const __start_sim_suites[];
extern "C" const void *const __stop_sim_suites[];

extern "C" const void *const *const sim_suites_begin;
extern "C" const void *const *const sim_suites_end;
const void *const *const sim_suites_begin = __start_sim_suites;
const void *const *const sim_suites_end = __stop_sim_suites;
