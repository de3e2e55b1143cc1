// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/work_queues.hpp"

namespace weft::hca::transport
{

Taken take_send(Context &card, Qp &qp, SendWork &work)
{
	RequesterState &s = qp.send;
	if (!s.rung)
		return Taken::none;
	work.index = s.next_wqe;
	work.packets = 0;
	work.failure = Syndrome::none;
	work.started = false;
	work.finished = false;
	const Taken taken = card.work.take_send(qp.pair, s.next_wqe, work.request, work.failure);
	if (taken == Taken::none)
		s.rung = false;
	if (taken == Taken::yes)
		s.next_wqe = static_cast<std::uint16_t>(s.next_wqe + work.request.slots);
	return taken;
}

} // namespace weft::hca::transport
