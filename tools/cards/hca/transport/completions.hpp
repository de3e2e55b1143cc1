// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Creates the completions of requests and receives, and fails a QP if that is impossible.
 */
#pragma once

#include "cards/hca/completion_sink.hpp"
#include "cards/hca/transport/qp.hpp"

namespace weft::hca::transport
{

class Engine;

/*
 * If a completion cannot be written, its QP is marked as broken, and the engine soon moves it to
 * the error state.
 */
class Completions
{
public:
	explicit Completions(Engine &engine) : engine_(engine) {}

	/* Completes a successful send; an entry is written if the request is signaled. */
	void sent(Qp &qp, const SendRequest &request, std::uint16_t index,
		  std::uint32_t byte_count = 0, std::span<const std::byte> data = {});
	void send_failed(Qp &qp, std::uint16_t index, Syndrome syndrome);
	void received(Qp &qp, const ReceiveWork &work, ReceiveDone done);
	void receive_failed(Qp &qp, const ReceiveWork &work, Syndrome syndrome);

private:
	/* Marks the QP as broken if the entry was not @written. */
	void check(Qp &qp, bool written);

	Engine &engine_;
};

} // namespace weft::hca::transport
