// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the ioctl() methods, which do the same as the write() commands of the same names. Each
// returns its output by attributes.write_output(); a failed method leaves no state behind.
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
Result<> invoke_write(Call &call, const Attributes &attributes);

/* context.cpp */
Result<> get_context(Call &call, const Attributes &attributes);
Result<> query_context(Call &call, const Attributes &attributes);
Result<> query_port(Call &call, const Attributes &attributes);
Result<> query_gid_table(Call &call, const Attributes &attributes);
Result<> query_gid_entry(Call &call, const Attributes &attributes);
Result<> alloc_async_event(Call &call, const Attributes &attributes);

/* memory.cpp */
Result<> dealloc_pd(Call &call, const Attributes &attributes);
Result<> dereg_mr(Call &call, const Attributes &attributes);
Result<> dealloc_mw(Call &call, const Attributes &attributes);

/* ah.cpp */
Result<> destroy_ah(Call &call, const Attributes &attributes);

/* cq.cpp */
Result<> create_cq(Call &call, const Attributes &attributes);
Result<> destroy_cq(Call &call, const Attributes &attributes);

/* srq.cpp */
Result<> create_srq(Call &call, const Attributes &attributes);
Result<> destroy_srq(Call &call, const Attributes &attributes);

/* qp.cpp */
Result<> create_qp(Call &call, const Attributes &attributes);
Result<> destroy_qp(Call &call, const Attributes &attributes);

/* xrcd.cpp */
Result<> close_xrcd(Call &call, const Attributes &attributes);

} // namespace methods
} // namespace uverbs
