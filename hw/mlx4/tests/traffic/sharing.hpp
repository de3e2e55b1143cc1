// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Declares the command of weft_traffic.ko that tests concurrent use of one QP and CQ. */
#pragma once
#include "endpoint.hpp"

namespace traffic
{

/*
 * Several callers use one QP, which is connected to itself (lid), and its one CQ at the same time:
 * tasks= of them on as many CPUs, and with interrupt=1 a hard interrupt. Each posts `count` pairs
 * of a send and a receive, and all poll and arm until every request has completed. Reports the
 * number of requests that have completed once and successfully (completed=), and that of other
 * completions (wrong=). May sleep. Errors: ETIMEDOUT.
 */
kern::Result<> share(ib_device *device, const Arguments &arguments, Answer &answer);

} // namespace traffic
