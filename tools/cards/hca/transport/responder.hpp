// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the responder of RC, XRC and UC (IBA 9.7.4, 9.7.5 and 9.8.3): receives requests,
 * executes them, and sends acknowledges or NAKs.
 */
#pragma once

#include <cstdint>

#include "cards/hca/transport/completions.hpp"
#include "cards/hca/transport/data_mover.hpp"
#include "cards/hca/transport/qp.hpp"
#include "cards/hca/work_source.hpp"
#include "core/wire/headers.hpp"

namespace weft::hca::transport
{

class Engine;

class Responder
{
public:
	explicit Responder(Engine &engine);

	/* Called when the QP has entered RTR and expects its first packet. */
	void start(Qp &qp);
	/* Handles a request packet. */
	void request(Qp &qp, fabric::Packet &packet);
	/*
	 * Sends pending responses and acknowledgements. Returns true if there is more to send at
	 * once.
	 */
	bool advance(Qp &qp, unsigned budget);
	/*
	 * Called when a command takes the QP out of the connection. Sends the pending
	 * acknowledgement or NAK now, because it cannot be sent later, and drops pending responses.
	 */
	void leave(Qp &qp);
	/* Completes posted receives as flushed. Returns true if there are more. */
	bool flush(Qp &qp, unsigned budget);

private:
	/* Result of the checks of a request, which are performed one after the other. */
	enum class Verdict : std::uint8_t {
		accepted,
		/* The payload was withdrawn in flight, so the packet counts as lost. */
		lost,
		/* There is no receive WQE: send an RNR NAK, and expect the packet again. */
		not_ready,
		/* Send a NAK, and move the QP to the error state. */
		invalid_request,
		access_error,
		operational_error,
		/*
		 * Send a NAK, and move the QP to the error state. The error is in the receive,
		 * which completes with an error.
		 */
		receive_failed_length,
		receive_failed_protection,
		/* The remote key of a write with immediate data is invalid (class C). */
		receive_failed_local_access,
		/* A SEND with invalidate specifies a key that must not be used (class C). */
		receive_failed_remote_access,
		/* The key may be used but not invalidated: no response is sent (class J). */
		receive_failed_memory_management,
	};

	void unreliable_request(Qp &qp, const packet::Headers &headers,
				const fabric::Packet &packet);
	bool in_sequence(Qp &qp, const packet::Headers &headers);
	void duplicate(Qp &qp, const packet::Headers &headers);
	Verdict execute(Qp &qp, const packet::Headers &headers, const fabric::Packet &packet);
	Verdict send(Qp &qp, const packet::Headers &headers, const fabric::Packet &packet);
	Verdict write(Qp &qp, const packet::Headers &headers, const fabric::Packet &packet);
	Verdict read(Qp &qp, const packet::Headers &headers);
	Verdict atomic(Qp &qp, const packet::Headers &headers);
	Verdict take(Qp &qp, const packet::Headers &headers);
	Verdict write_refused(Qp &qp, const packet::Headers &headers);
	static bool has_resources(Qp &qp);
	void refuse(Qp &qp, Verdict verdict);
	void nak(Qp &qp, std::uint8_t syndrome);
	void complete(Qp &qp, const packet::Headers &headers, ReceiveOpcode opcode,
		      std::uint32_t byte_count, std::span<const std::byte> data = {});
	void remember(Qp &qp, const DoneRequest &done);

	void send_acknowledge(Qp &qp);
	void send_response(Qp &qp, Response &response);
	packet::Headers headers_for(const Qp &qp, ib::Operation operation, Psn psn) const;
	void transmit(Qp &qp, const packet::Headers &headers, fabric::Payload payload,
		      unsigned packets = 1);
	std::uint32_t read_packets(const Qp &qp, std::uint32_t length) const;
	SharedReceiveQueue *xrc_queue(const Qp &qp, const packet::Headers &headers) const;
	std::uint32_t domain_of(const Qp &qp, const packet::Headers &headers) const;
	KeyUse remote_use(const Qp &qp, std::uint32_t key, KeyAccess access,
			  std::uint32_t pd) const;

	Engine &engine_;
	DataMover mover_;
};

} // namespace weft::hca::transport
