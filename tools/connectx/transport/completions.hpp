// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Completion entries of the data path.
 */
#pragma once

#include "connectx/transport/qp.hpp"

namespace weft::connectx::transport
{

class Engine;

/* Everything about a received message that its completion tells. */
struct ReceiveReport {
	hw::connectx::CqeReceiveOpcode opcode = hw::connectx::CqeReceiveOpcode::send;
	std::uint32_t immediate = 0;
	std::uint32_t byte_count = 0;
	std::uint32_t source_qpn = 0;
	std::uint16_t source_lid = 0;
	std::uint8_t sl = 0;
	std::uint8_t path_bits = 0;
	bool grh = false;
	bool solicited = false;
	std::uint16_t status = 0;
	std::uint8_t checksum_flags = 0;
	std::uint16_t checksum = 0;
};

/*
 * A completion that cannot be written breaks its QP: the engine fails it soon after.
 */
class Completions
{
public:
	explicit Completions(Engine &engine) : engine_(engine) {}

	/* A send ended well; an entry is written if it was asked for. */
	void sent(Qp &qp, const SendRequest &request, std::uint16_t index,
		  std::uint32_t byte_count = 0);
	void send_failed(Qp &qp, std::uint16_t index, CqeSyndrome syndrome);
	void received(Qp &qp, const ReceiveWork &work, const ReceiveReport &report);
	void receive_failed(Qp &qp, const ReceiveWork &work, CqeSyndrome syndrome);

private:
	void post(Qp &qp, std::uint32_t cqn, const hw::connectx::Cqe &cqe, bool solicited);
	/* @srqn: of an XRC receive, otherwise 0. */
	void post_error(Qp &qp, std::uint32_t cqn, std::uint32_t srqn, std::uint16_t index,
			CqeSyndrome syndrome, bool is_send);

	Engine &engine_;
};

} // namespace weft::connectx::transport
