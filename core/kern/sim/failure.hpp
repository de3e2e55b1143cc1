// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reports an error found during a run. The first failure ends the run.
#pragma once
#include <functional>
#include <string>
#include "fiber.hpp"

namespace sim
{

/* Reports a failure, and does not return. title: identifies the kind of defect. */
[[noreturn]] void fail(const std::string &title, const std::string &detail);
/* Sets the function that is called on failure, and has to end the process. */
void on_failure(std::function<void(const std::string &title, const std::string &detail)> handler);

/* A code address as "function file:line", without the frames of the simulation's own headers. */
std::string where(const void *address);
/* "call in function file:line" */
std::string describe(const Place &place);

/* The name that a lock's class was declared by. */
std::string lock_name(const void *lock_class);

} // namespace sim
