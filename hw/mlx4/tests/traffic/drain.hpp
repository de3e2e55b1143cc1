// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* A command of weft_traffic.ko that tests draining and destroying a QP. */
#pragma once
#include "endpoint.hpp"

namespace traffic
{

/*
 * Fills both queues of a QP of type rc or xrc, whose peer (lid, qpn, target, srqn) takes nothing,
 * with `count` requests each, drains it (how=destroy: destroys it; how=poll: the same with a CQ
 * that the midlayer does not poll), and says how many were flushed by then: sends= receives=, and
 * disorder= of those that came out of turn. May sleep.
 */
kern::Result<> drain(ib_device *device, const Arguments &arguments, Answer &answer);

} // namespace traffic
