// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The ioctl() methods, which do the same as the write() commands of the same names. Each returns
// its output by said.write_output(); a failed method leaves no state behind.
#pragma once
#include "attributes.hpp"
#include "command.hpp"

namespace uverbs
{

/*
 * Runs the method that is called by the list at this address in the program's memory. Context:
 * process, the program's. Errors: those of Documentation/user-verbs.rst, and those of the method.
 */
kern::Result<> run_method(File &file, u64 from, Present present);

namespace methods
{

using kern::Result;

/* command.cpp: runs any command, without its header */
Result<> invoke_write(Call &call, const Attributes &said);

/* context.cpp */
Result<> get_context(Call &call, const Attributes &said);
Result<> query_context(Call &call, const Attributes &said);
Result<> query_port(Call &call, const Attributes &said);
Result<> query_gid_table(Call &call, const Attributes &said);
Result<> query_gid_entry(Call &call, const Attributes &said);
Result<> alloc_async_event(Call &call, const Attributes &said);

/* memory.cpp */
Result<> dealloc_pd(Call &call, const Attributes &said);
Result<> dereg_mr(Call &call, const Attributes &said);
Result<> dealloc_mw(Call &call, const Attributes &said);

/* ah.cpp */
Result<> destroy_ah(Call &call, const Attributes &said);

/* cq.cpp */
Result<> create_cq(Call &call, const Attributes &said);
Result<> destroy_cq(Call &call, const Attributes &said);

/* srq.cpp */
Result<> create_srq(Call &call, const Attributes &said);
Result<> destroy_srq(Call &call, const Attributes &said);

/* qp.cpp */
Result<> create_qp(Call &call, const Attributes &said);
Result<> destroy_qp(Call &call, const Attributes &said);

/* xrcd.cpp */
Result<> close_xrcd(Call &call, const Attributes &said);

} // namespace methods
} // namespace uverbs
