// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements one end of an RDMAP stream: encodes requests into bytes for the peer, and executes the
// peer's messages. It uses neither a clock nor sockets. Its owner passes the bytes to and from the
// peer, by TCP or, in a test, directly.
//
// Invalid input causes a Terminate. Data is stored only where the stream's user (class Host) has
// permitted it.
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
		closed,  // the peer has closed the stream in an orderly way
		refused, // the peer has rejected the request
		lost,    // the connection was reset, or was closed with unfinished work
		failed,  // an error on this side, which a Terminate reports if the stream had begun
		terminated, // the peer has sent a Terminate
	} kind;
	Error error{};
	bool operator==(const End &) const = default;
};

// Data to write or send. @read copies a part of it, from @offset on, and returns false if that
// fails.
struct Source {
	std::uint32_t length = 0;
	std::function<bool(std::uint32_t offset, std::span<std::uint8_t> into)> read{};
};

// Owner of a stream. The stream calls these functions from within its own functions. They may call
// only post(), accept() and reject() of the stream, and must not destroy it.
class Host
{
public:
	virtual ~Host() = default;

	// Called at a responder when it has received the request; it must then call accept() or
	// reject(). Called at an initiator when it has received the reply.
	virtual void requested(const StartFrame &request) = 0;
	virtual void established(const StartFrame &reply) = 0;
	// Called when the responder has refused the initiator's request, with its reply. ended()
	// follows.
	virtual void refused(const StartFrame &reply) = 0;

	// Execute the peer's Writes, its Reads, and the invalidations of its Sends.
	virtual Access place(Stag stag, std::uint64_t offset, View payload) = 0;
	virtual Access fetch(Stag stag, std::uint64_t offset, std::span<std::uint8_t> into) = 0;
	virtual Access invalidate(Stag stag) = 0;
	// Stores the response to a Read of this side. The stream has checked the location.
	virtual Access place_response(Stag stag, std::uint64_t offset, View payload) = 0;

	// Receive a message. next_receive() is called when a message begins. It returns the size of
	// the next receive, or nothing if there is none. The parts of the message follow in order.
	// A result of false means that a part cannot be stored.
	virtual std::optional<std::uint64_t> next_receive() = 0;
	virtual bool place_message(std::uint64_t offset, View payload) = 0;
	virtual void received(std::uint64_t length, bool solicited,
			      std::optional<Stag> invalidated) = 0;

	// Called when a posted request has been sent, or when the data of a Read has arrived.
	virtual void completed(std::uint64_t id) = 0;
	// Called once, as the last callback. Posted requests that have not completed are not
	// reported.
	virtual void ended(const End &end) = 0;
};

struct StreamConfig {
	bool initiator = false;
	// own request, or the options of a responder: markers, crc, and ird and ord of `enhanced`
	StartFrame start{};
	std::size_t most_ulpdu = 1454; // an FPDU of this length fits into a segment of 1460 bytes
	// ird limits the number of the peer's Reads that are answered at a time, and ord the number
	// of this side's outstanding Reads. The values of an enhanced reply can reduce them.
	std::size_t ird = 16;
	std::size_t ord = 16;
};

// A request to be executed.
struct Request {
	Opcode opcode; // write, read_request, or a Send
	std::uint64_t id = 0;
	bool fence = false; // the request starts only after all Reads have completed
	Source source{};    // unused for a Read
	// For a Write, the remote memory; for an invalidating Send, the STag to invalidate.
	Stag stag = 0;
	std::uint64_t offset = 0;
	ReadRequest read{}; // set for a Read
};

class Stream
{
public:
	// @host must outlive the stream. The first output of an initiator is its request.
	// most_ulpdu of @config must be between 64 and kMostUlpdu.
	Stream(const StreamConfig &config, Host &host);
	Stream(const Stream &) = delete;
	Stream &operator=(const Stream &) = delete;

	// Sets ird and ord of the configuration, for a responder that has not answered yet.
	void set_reads(std::size_t ird, std::size_t ord);
	// Answer a request, after requested() was called at a responder.
	void accept(const Bytes &private_data);
	void reject(const Bytes &private_data);

	// Posts a request. Requests are executed in order. The caller must limit their number. Has
	// no effect after the stream has closed.
	void post(Request request);

	// Handles bytes from the peer. Bytes after the end of the stream are ignored.
	void feed(View bytes);
	// Must be called when the peer has closed the connection. @in_order is false for a reset.
	void closed(bool in_order);

	// Copies up to @into's size of bytes of one FPDU for the peer. Returns 0 if there is
	// nothing to send. The next FPDU is created only after the current one has been taken
	// completely. A caller that sends the result of each call as one TCP segment conforms to
	// RFC 5044 section 5.
	std::size_t take(std::span<std::uint8_t> into);
	// Returns true if all output has been taken. The owner then closes the connection.
	bool finished() const { return finishing_ && output_.size() == taken_; }
	bool ended() const { return ended_; }
	// Returns true if all posted requests and the peer's Reads have completed, so that the
	// stream may be closed in an orderly way.
	bool quiet() const
	{
		return state_ == State::open && requests_.empty() && !outgoing_ && reads_.empty() &&
		       to_answer_.empty() && taken_ == output_.size();
	}

private:
	enum class State { starting, asked, open, over };

	// An outgoing message, which is sent segment by segment.
	struct Outgoing {
		Segment segment; // header of the next segment
		Source source;
		std::uint32_t done = 0;
		// ID of the request that is completed with this message
		std::optional<std::uint64_t> id;
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
	std::optional<StartFrame> request_; // request of the peer, if this side is the responder
	std::optional<FpduReader> reader_;
	std::optional<FpduWriter> writer_;
	std::size_t ird_;
	std::size_t most_ulpdu_ = 0; // limit of the configuration minus the length of markers
	std::size_t ord_;
	// A responder must not send before the initiator has sent (RFC 5044 section 7.1.2).
	bool may_send_ = false;
	// The agreed type of the initiator's first message, whose only purpose is to permit the
	// responder to send.
	std::optional<Opcode> ready_to_receive_;
	bool ended_ = false;
	bool finishing_ = false; // no more output is created

	// Receive side.
	std::array<std::uint32_t, kQueues> expected_{1, 1, 1};
	std::optional<Opcode> message_; // opcode of an incomplete Send
	std::uint32_t message_bytes_ = 0;
	std::uint64_t message_room_ = 0;
	Stag message_invalidates_ = 0;
	bool within_write_ = false;
	std::deque<OutstandingRead> reads_;

	// Transmit side.
	Bytes output_;
	std::size_t taken_ = 0;
	std::array<std::uint32_t, kQueues> next_{1, 1, 1};
	std::deque<Request> requests_;
	std::deque<ReadRequest> to_answer_;
	std::optional<Outgoing> outgoing_;
	bool answered_last_ = false;
};

} // namespace weft::iwarp
