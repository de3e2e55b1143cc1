// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reports an error that is found while a test case runs in the simulated kernel. The first failure
// ends the run.
#pragma once
#include <functional>
#include <string>
#include "fiber.hpp"

namespace sim
{

/* Reports a failure, and does not return. @title: identifies the kind of defect. */
[[noreturn]] void fail(const std::string &title, const std::string &detail);
/* Sets the function that is called on a failure. It must terminate the process. */
void on_failure(std::function<void(const std::string &title, const std::string &detail)> handler);

/*
 * Returns the text "function file:line" for a code address, without frames of the simulation's own
 * headers.
 */
std::string where(const void *address);
/* Returns the text "call in function file:line". */
std::string describe(const Place &place);

/* Returns the name with which a lock class was declared. */
std::string lock_name(const void *lock_class);

} // namespace sim
