// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Declares the command of weft_traffic.ko that tests draining and destroying a QP. */
#pragma once
#include "endpoint.hpp"

namespace traffic
{

/*
 * Fills both queues of a QP of type rc or xrc, whose peer (lid, qpn, target, srqn) receives
 * nothing, with `count` requests each, and drains it (how=destroy: destroys it; how=poll: the same
 * with a CQ that the midlayer does not poll). Reports how many requests were flushed by then
 * (sends=, receives=), and how many of them in the wrong order (disorder=). May sleep.
 */
kern::Result<> drain(ib_device *device, const Arguments &arguments, Answer &answer);

} // namespace traffic
