// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* A command of weft_traffic.ko that tests concurrent use of one QP and CQ. */
#pragma once
#include "endpoint.hpp"

namespace traffic
{

/*
 * Several callers use one QP, connected to itself (lid), and its one CQ at once: tasks= of them on
 * as many CPUs, and with interrupt=1 a hard interrupt. Each posts `count` pairs of a send and a
 * receive, and all poll and arm until every request has completed. Answers completed= requests
 * that completed once and well, and wrong= completions that did not. May sleep. Errors: ETIMEDOUT.
 */
kern::Result<> share(ib_device *device, const Arguments &arguments, Answer &answer);

} // namespace traffic
