// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// One end of an RDMAP stream: encodes requests into bytes for the peer, and executes the peer's
// messages. It depends neither on time nor on sockets: its owner moves the bytes, over TCP or in a
// test.
//
// Invalid input causes a Terminate; data is placed only where its host has permitted
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>

#include "net/iwarp/bytes.hpp"
#include "net/iwarp/errors.hpp"
#include "net/iwarp/mpa.hpp"
#include "net/iwarp/segment.hpp"

namespace weft::iwarp
{

// Result of an access to the memory of the stream's host.
enum class Access { done, invalid_stag, bounds, refused };

// The reason why a stream was closed.
struct End {
	enum class Kind {
		closed,  // by the other, with nothing left undone
		refused, // the other did not want it
		lost,    // the bytes ended where they must not
		failed,  // by an error found here; a Terminate says which, if the stream had begun
		terminated, // by the other's Terminate
	} kind;
	Error error{};
	bool operator==(const End &) const = default;
};

// Data to write or send: @read fills a part of it from @offset on; false if that fails.
struct Source {
	std::uint32_t length = 0;
	std::function<bool(std::uint32_t offset, std::span<std::uint8_t> into)> read{};
};

// Owner of a stream. It is called from within Stream's functions, and must not call them from there
// except post(), accept() and reject(), nor destroy the stream there.
class Host
{
public:
	virtual ~Host() = default;

	// A responder has the request, to accept() or reject(); an initiator the reply.
	virtual void requested(const StartFrame &request) = 0;
	virtual void established(const StartFrame &reply) = 0;
	// The responder has refused the initiator's request with this reply; ended() follows.
	virtual void refused(const StartFrame &reply) = 0;

	// The other's Write, its Read of this side, and what a Send invalidates.
	virtual Access place(Stag stag, std::uint64_t offset, View payload) = 0;
	virtual Access fetch(Stag stag, std::uint64_t offset, std::span<std::uint8_t> into) = 0;
	virtual Access invalidate(Stag stag) = 0;
	// The response to a Read of one's own, whose place it has been held to.
	virtual Access place_response(Stag stag, std::uint64_t offset, View payload) = 0;

	// A message begins: the room of the next receive, or nothing if there is none. Its parts,
	// in order; false: they cannot be placed.
	virtual std::optional<std::uint64_t> next_receive() = 0;
	virtual bool place_message(std::uint64_t offset, View payload) = 0;
	virtual void received(std::uint64_t length, bool solicited,
			      std::optional<Stag> invalidated) = 0;

	// A posted request has been sent; for a Read, its data has arrived.
	virtual void completed(std::uint64_t id) = 0;
	// Called once, and last. Posted requests that are not completed will not be.
	virtual void ended(const End &end) = 0;
};

struct StreamConfig {
	bool initiator = false;
	StartFrame
		start{}; // one's own request; of a responder, the wishes: markers, crc, enhanced's ird and ord
	std::size_t most_ulpdu = 1454; // with which an FPDU fits into a segment of 1460 bytes
	// ird limits the peer's Reads that are answered at a time, ord this side's own Reads in
	// flight. The values in an enhanced reply lower them.
	std::size_t ird = 16;
	std::size_t ord = 16;
};

// A request to be posted.
struct Request {
	Opcode opcode; // Write, ReadRequest, or a Send
	std::uint64_t id = 0;
	bool fence = false; // not before all Reads are in
	Source source{};    // not of a Read
	// Write: the other's memory. An invalidating Send: what.
	Stag stag = 0;
	std::uint64_t offset = 0;
	ReadRequest read{}; // of a Read
};

class Stream
{
public:
	// @host outlives it. An initiator's request is the first output. @config's most_ulpdu is 64
	// to kMostUlpdu.
	Stream(const StreamConfig &config, Host &host);
	Stream(const Stream &) = delete;
	Stream &operator=(const Stream &) = delete;

	// Sets ird and ord, as in config, for a responder that has not answered yet.
	void set_reads(std::size_t ird, std::size_t ord);
	// A responder's answer to requested().
	void accept(const Bytes &private_data);
	void reject(const Bytes &private_data);

	// In order. The caller has to bound their number. Ignored once the stream is closed.
	void post(Request request);

	// The other's bytes; what comes after the end is ignored.
	void feed(View bytes);
	// The other has closed, in order or not.
	void closed(bool in_order);

	// Takes up to @into's size of bytes for the peer, of one FPDU; 0: there are none now. No
	// FPDU is made before the one before it is taken. A caller that gives TCP each as a segment
	// of its own does as RFC 5044 section 5 asks.
	std::size_t take(std::span<std::uint8_t> into);
	// True if all output has been taken: the owner then closes the connection.
	bool finished() const { return finishing_ && output_.size() == taken_; }
	bool ended() const { return ended_; }
	// True if all posted requests and the peer's Reads are done, so that the stream may be
	// closed in order.
	bool quiet() const
	{
		return state_ == State::open && requests_.empty() && !outgoing_ && reads_.empty() &&
		       to_answer_.empty() && taken_ == output_.size();
	}

private:
	enum class State { starting, asked, open, over };

	// A message that goes out, segment by segment.
	struct Outgoing {
		Segment segment; // the next one's header
		Source source;
		std::uint32_t done = 0;
		std::optional<std::uint64_t> id; // of what is completed with it
	};
	struct OutstandingRead {
		ReadRequest request;
		std::uint32_t done = 0;
		std::uint64_t id;
	};

	void begin(const StartFrame &mine, const StartFrame &other);
	void feed_start(View &bytes);
	void reply(bool reject, const Bytes &private_data);
	void agree_on_peer_to_peer(const Enhanced &asked, Enhanced &answer);

	std::optional<Error> take_segment(View ulpdu);
	std::optional<Error> take_write(const Segment &segment);
	std::optional<Error> take_response(const Segment &segment);
	std::optional<Error> take_read_request(const Segment &segment);
	std::optional<Error> take_send(const Segment &segment);
	bool is_ready_to_receive(const Segment &segment);
	void take_terminate(const Segment &segment);

	bool make_output();
	bool begin_response();
	bool begin_request();
	bool make_segment();
	void fail(const Error &error);
	void end(const End &how);

	StreamConfig config_;
	Host &host_;
	State state_ = State::starting;
	StartReader start_reader_;
	std::optional<StartFrame> request_; // the other's, of a responder
	std::optional<FpduReader> reader_;
	std::optional<FpduWriter> writer_;
	std::size_t ird_;
	std::size_t most_ulpdu_ = 0; // config_'s, less what markers take
	std::size_t ord_;
	// A responder is silent until the initiator has spoken (RFC 5044 section 7.1.2).
	bool may_send_ = false;
	// The agreed kind of the first message, which has no other purpose than to end the
	// responder's silence.
	std::optional<Opcode> ready_to_receive_;
	bool ended_ = false;
	bool finishing_ = false; // nothing is made any more

	// In.
	std::array<std::uint32_t, kQueues> expected_{1, 1, 1};
	std::optional<Opcode> message_; // a Send whose last segment has not come
	std::uint32_t message_bytes_ = 0;
	std::uint64_t message_room_ = 0;
	Stag message_invalidates_ = 0;
	bool within_write_ = false;
	std::deque<OutstandingRead> reads_;

	// Out.
	Bytes output_;
	std::size_t taken_ = 0;
	std::array<std::uint32_t, kQueues> next_{1, 1, 1};
	std::deque<Request> requests_;
	std::deque<ReadRequest> to_answer_;
	std::optional<Outgoing> outgoing_;
	bool answered_last_ = false;
};

} // namespace weft::iwarp
