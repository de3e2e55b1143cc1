/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The receive buffers of a special QP: one for every place in its queue. Who polls the CQ owns all of it, before him who opens the special QP,
 * after him who ends it: there is no lock.
 */
#pragma once

#include "packet.hpp"

namespace mgmt
{

class ReceiveQueue
{
public:
	static constexpr int depth = 512;

	/* done: called with each completion of a buffer, which gives it back by take_back(). */
	ReceiveQueue(ib_pd *pd, void (*done)(ib_cq *, ib_wc *)) : pd_(pd), done_(done) {}

	void open(ib_qp *qp) { qp_ = qp; }
	/* Frees what the hardware did not give back, now that the QP is gone and nothing can write to it. */
	void close();

	bool full() const { return count_ == depth; }
	bool empty() const { return count_ == 0; }
	int missing() const { return depth - count_; }

	/* Posts what is missing. Errors: ENOMEM, and what the device says. Context: process. */
	kern::Result<> fill();
	/* Posts one buffer. Errors: what the device says; the buffer is freed. */
	kern::Result<> post(kern::Owned<Receive> receive);
	/* Of a completion. */
	kern::Owned<Receive> take_back(Receive *receive);

private:
	void unmap(const Receive &receive);

	ib_pd *const pd_;
	void (*const done_)(ib_cq *, ib_wc *);
	ib_qp *qp_ = nullptr;
	kern::List<Receive, &Receive::node> posted_;
	int count_ = 0;
};

} // namespace mgmt
