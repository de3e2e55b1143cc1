// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/iwarp/stream.hpp"

#include <algorithm>
#include <utility>

namespace weft::iwarp
{

namespace
{

Error write_error(Access access)
{
	switch (access) {
	case Access::invalid_stag:
		return errors::kTaggedInvalidStag;
	case Access::bounds:
		return errors::kTaggedBounds;
	default:
		return errors::kAccess; // DDP has no error code for this
	}
}

Error read_error(Access access)
{
	switch (access) {
	case Access::invalid_stag:
		return errors::kInvalidStag;
	case Access::bounds:
		return errors::kBounds;
	default:
		return errors::kAccess;
	}
}

// Returns the lower of the two limits, or the own limit if the peer negotiates none.
std::uint16_t agreed(std::size_t own, std::uint16_t others)
{
	const auto mine =
		static_cast<std::uint16_t>(std::min<std::size_t>(own, Enhanced::kUnlimited - 1));
	return others == Enhanced::kUnlimited ? mine : std::min(mine, others);
}

} // namespace

Stream::Stream(const StreamConfig &config, Host &host)
    : config_(config), host_(host), start_reader_(config.initiator), ird_(config.ird),
      ord_(config.ord)
{
	if (config.initiator)
		output_ = encode(config.start);
}

void Stream::begin(const StartFrame &mine, const StartFrame &other)
{
	// RFC 5044 section 7.1.1: both directions use the CRC if either side requests it.
	const bool crc = mine.crc || other.crc;
	reader_.emplace(mine.markers, crc);
	writer_.emplace(other.markers, crc);
	// Markers, if the peer has requested them, are part of the same segment.
	const std::size_t markers =
		(config_.most_ulpdu + 6 + kMarkerInterval - 1) / kMarkerInterval;
	most_ulpdu_ = config_.most_ulpdu - (other.markers ? 4 * markers : 0);
	state_ = State::open;
	may_send_ = config_.initiator;
}

// The reply has the request's revision. The enhanced part of the private data is present only if it
// was requested.
void Stream::reply(bool reject, const Bytes &private_data)
{
	if (state_ != State::asked)
		return;
	StartFrame mine = config_.start;
	mine.reply = true;
	mine.reject = reject;
	mine.revision = request_->revision;
	mine.crc = config_.start.crc || request_->crc;
	mine.private_data = private_data;
	mine.enhanced.reset();
	if (const auto &asked = request_->enhanced) {
		// The peer's outstanding Reads are those that this side answers, and vice versa
		// (RFC 6581 section 6).
		ird_ = agreed(config_.ird, asked->ord);
		ord_ = agreed(config_.ord, asked->ird);
		mine.enhanced = Enhanced{.ird = static_cast<std::uint16_t>(ird_),
					 .ord = static_cast<std::uint16_t>(ord_)};
		if (!reject)
			agree_on_peer_to_peer(*asked, *mine.enhanced);
	}
	output_ = encode(mine);
	taken_ = 0;
	if (reject)
		return end({End::Kind::refused});
	begin(mine, *request_);
}

// Chooses the cheapest of the message types that the peer has offered for the first message.
void Stream::agree_on_peer_to_peer(const Enhanced &asked, Enhanced &answer)
{
	if (!asked.peer_to_peer)
		return;
	answer.by_write = asked.by_write;
	answer.by_read = !answer.by_write && asked.by_read && ird_ != 0;
	answer.by_send = !answer.by_write && !answer.by_read && asked.by_send;
	answer.peer_to_peer = answer.by_write || answer.by_read || answer.by_send;
	if (answer.peer_to_peer)
		ready_to_receive_ = answer.by_write  ? Opcode::write
				    : answer.by_read ? Opcode::read_request
						     : Opcode::send;
}

void Stream::set_reads(std::size_t ird, std::size_t ord)
{
	ird_ = config_.ird = ird;
	ord_ = config_.ord = ord;
}

void Stream::accept(const Bytes &private_data)
{
	reply(false, private_data);
}

void Stream::reject(const Bytes &private_data)
{
	reply(true, private_data);
}

void Stream::post(Request request)
{
	if (!ended_)
		requests_.push_back(std::move(request));
}

void Stream::feed(View bytes)
{
	if (state_ == State::starting)
		feed_start(bytes);
	else if (state_ == State::asked && !bytes.empty())
		return end({End::Kind::failed, errors::kStartFrame});
	if (state_ != State::open || bytes.empty())
		return;
	std::optional<Error> wrong;
	const auto failed = reader_->feed(bytes, [&](View ulpdu) {
		wrong = take_segment(ulpdu);
		return !wrong && !ended_;
	});
	if (failed || wrong)
		fail(failed ? *failed : *wrong);
}

void Stream::feed_start(View &bytes)
{
	if (!start_reader_.feed(bytes))
		return end({End::Kind::failed, errors::kStartFrame});
	const auto &frame = start_reader_.frame();
	if (!frame)
		return;
	if (!config_.initiator) {
		// Data must not follow a request before the reply was sent (RFC 5044 section
		// 7.1.2).
		if (!bytes.empty())
			return end({End::Kind::failed, errors::kStartFrame});
		request_ = frame;
		state_ = State::asked;
		host_.requested(*frame);
		return;
	}
	if (frame->reject) {
		host_.refused(*frame);
		return end({End::Kind::refused});
	}
	// A reply may have an older revision, but not a newer one.
	if (frame->revision > config_.start.revision)
		return end({End::Kind::failed, errors::kStartFrame});
	if (const auto &received = frame->enhanced) {
		ird_ = std::min<std::size_t>(
			ird_, received->ord == Enhanced::kUnlimited ? ird_ : received->ord);
		ord_ = std::min<std::size_t>(
			ord_, received->ird == Enhanced::kUnlimited ? ord_ : received->ird);
	}
	begin(config_.start, *frame);
	host_.established(*frame);
}

void Stream::closed(bool in_order)
{
	if (ended_)
		return;
	const bool undone = state_ != State::open || reader_->within() || message_ ||
			    within_write_ || !reads_.empty() || !to_answer_.empty() || outgoing_ ||
			    !requests_.empty() || taken_ != output_.size();
	if (in_order && !undone)
		end({End::Kind::closed});
	else
		end({End::Kind::lost, errors::kConnectionLost});
}

std::optional<Error> Stream::take_segment(View ulpdu)
{
	const auto parsed = parse_segment(ulpdu);
	if (const Error *error = std::get_if<Error>(&parsed))
		return *error;
	const Segment &segment = std::get<Segment>(parsed);
	may_send_ = true;
	if (std::exchange(ready_to_receive_, std::nullopt) == segment.opcode &&
	    is_ready_to_receive(segment))
		return std::nullopt;
	if (!is_tagged(segment.opcode) && segment.sequence != expected_[segment.queue])
		return errors::kSequenceNumber;
	switch (segment.opcode) {
	case Opcode::write:
		return take_write(segment);
	case Opcode::read_response:
		return take_response(segment);
	case Opcode::read_request:
		return take_read_request(segment);
	case Opcode::terminate:
		take_terminate(segment);
		return std::nullopt;
	default:
		return take_send(segment);
	}
}

// Returns true for the initiator's first message if its only purpose is to show that the initiator
// is ready. Such a Send uses no receive and is not reported. (An empty Write is not reported
// anyway, and an empty Read is answered.)
bool Stream::is_ready_to_receive(const Segment &segment)
{
	if (segment.opcode != Opcode::send || !segment.payload.empty() || !segment.last ||
	    segment.sequence != expected_[kSendQueue])
		return false;
	++expected_[kSendQueue];
	return true;
}

std::optional<Error> Stream::take_write(const Segment &segment)
{
	within_write_ = !segment.last;
	// The STag and offset of an empty message are not checked (RFC 5040 section 4.2).
	if (segment.payload.empty())
		return std::nullopt;
	const Access access = host_.place(segment.stag, segment.offset, segment.payload);
	return access == Access::done ? std::nullopt : std::optional(write_error(access));
}

// The segment must be the next part of the response to the oldest Read.
std::optional<Error> Stream::take_response(const Segment &segment)
{
	if (reads_.empty())
		return errors::kUnexpectedOpcode;
	OutstandingRead &read = reads_.front();
	const auto size = segment.payload.size();
	if (size > read.request.length - read.done ||
	    (segment.last && size != read.request.length - read.done))
		return errors::kTaggedBounds;
	if (read.request.length != 0) {
		if (segment.stag != read.request.sink)
			return errors::kTaggedInvalidStag;
		if (segment.offset != read.request.sink_offset + read.done)
			return errors::kTaggedBounds;
	}
	if (size != 0)
		if (const Access access =
			    host_.place_response(segment.stag, segment.offset, segment.payload);
		    access != Access::done)
			return write_error(access);
	read.done += static_cast<std::uint32_t>(size);
	if (segment.last) {
		const auto id = read.id;
		reads_.pop_front();
		host_.completed(id);
	}
	return std::nullopt;
}

std::optional<Error> Stream::take_read_request(const Segment &segment)
{
	if (segment.message_offset != 0)
		return errors::kMessageOffset;
	if (!segment.last || segment.payload.size() > kReadRequestBytes)
		return errors::kMessageTooLong;
	if (segment.payload.size() < kReadRequestBytes)
		return errors::kStreamCatastrophic;
	if (to_answer_.size() + (outgoing_ && outgoing_->segment.opcode == Opcode::read_response) >=
	    ird_)
		return errors::kNoBuffer;
	const ReadRequest request = parse_read_request(segment.payload);
	if (request.source_offset + request.length < request.source_offset)
		return errors::kWrapped;
	++expected_[kReadQueue];
	to_answer_.push_back(request);
	return std::nullopt;
}

std::optional<Error> Stream::take_send(const Segment &segment)
{
	if (!message_) {
		const auto room = host_.next_receive();
		if (!room)
			return errors::kNoBuffer;
		message_ = segment.opcode;
		message_bytes_ = 0;
		message_room_ = *room;
		message_invalidates_ = segment.stag;
	}
	if (segment.opcode != *message_ ||
	    (invalidates(*message_) && segment.stag != message_invalidates_))
		return errors::kUnexpectedOpcode;
	if (segment.message_offset != message_bytes_)
		return errors::kMessageOffset;
	const std::uint64_t length = message_bytes_ + std::uint64_t{segment.payload.size()};
	// Offsets have 32 bits, even if the receive is larger.
	if (length > message_room_ || length > 0xffffffff)
		return errors::kMessageTooLong;
	if (!segment.payload.empty() && !host_.place_message(message_bytes_, segment.payload))
		return errors::kLocalCatastrophic;
	message_bytes_ = static_cast<std::uint32_t>(length);
	if (!segment.last)
		return std::nullopt;
	++expected_[kSendQueue];
	const Opcode opcode = *std::exchange(message_, std::nullopt);
	if (invalidates(opcode) && host_.invalidate(segment.stag) != Access::done)
		return errors::kCannotInvalidate;
	host_.received(length, is_solicited(opcode),
		       invalidates(opcode) ? std::optional(segment.stag) : std::nullopt);
	return std::nullopt;
}

// Closes the stream, whatever the Terminate contains.
void Stream::take_terminate(const Segment &segment)
{
	Error received = errors::kStreamCatastrophic;
	if (segment.payload.size() >= 4)
		received = {static_cast<std::uint8_t>(segment.payload[0] >> 4),
			    static_cast<std::uint8_t>(segment.payload[0] & 0xf),
			    segment.payload[1]};
	end({End::Kind::terminated, received});
}

std::size_t Stream::take(std::span<std::uint8_t> into)
{
	if (taken_ == output_.size() && !make_output())
		return 0;
	const std::size_t size = std::min(into.size(), output_.size() - taken_);
	std::copy_n(output_.begin() + static_cast<std::ptrdiff_t>(taken_), size, into.begin());
	taken_ += size;
	return size;
}

// Creates one FPDU. Returns false if there is nothing to send.
bool Stream::make_output()
{
	if (finishing_ || state_ != State::open || !may_send_)
		return false;
	// Messages are not interleaved. Responses and requests alternate, so that neither starves
	// the other.
	if (!outgoing_ && !(answered_last_ ? begin_request() || begin_response()
					   : begin_response() || begin_request()))
		return taken_ < output_.size(); // possibly a Terminate
	return make_segment();
}

bool Stream::begin_response()
{
	if (to_answer_.empty())
		return false;
	const ReadRequest request = to_answer_.front();
	to_answer_.pop_front();
	outgoing_ = Outgoing{.segment = {.opcode = Opcode::read_response,
					 .last = false,
					 .stag = request.sink,
					 .offset = request.sink_offset,
					 .payload = {}},
			     .source = {.length = request.length, .read = {}},
			     .id = {}};
	// The data is read when the segment is created.
	outgoing_->source.read = [this, request](std::uint32_t offset,
						 std::span<std::uint8_t> into) {
		const Access access =
			host_.fetch(request.source, request.source_offset + offset, into);
		if (access != Access::done)
			fail(read_error(access));
		return access == Access::done;
	};
	answered_last_ = true;
	return true;
}

bool Stream::begin_request()
{
	if (requests_.empty())
		return false;
	Request &next = requests_.front();
	const bool is_read = next.opcode == Opcode::read_request;
	// Without this check, this request and all later ones would wait forever.
	if (is_read && ord_ == 0) {
		fail(errors::kLocalCatastrophic);
		return false;
	}
	if ((next.fence && !reads_.empty()) || (is_read && reads_.size() >= ord_))
		return false;
	Outgoing going{.segment = {.opcode = next.opcode,
				   .last = false,
				   .stag = next.stag,
				   .offset = next.offset,
				   .payload = {}},
		       .source = std::move(next.source),
		       .id = next.id};
	if (is_read) {
		going.segment.stag = 0;
		going.segment.queue = kReadQueue;
		going.source = {.length = kReadRequestBytes,
				.read = [bytes = encode(next.read)](std::uint32_t offset,
								    std::span<std::uint8_t> into) {
					std::copy_n(bytes.begin() + offset, into.size(),
						    into.begin());
					return true;
				}};
		going.id.reset();
		reads_.push_back({.request = next.read, .id = next.id});
	}
	if (!is_tagged(going.segment.opcode))
		going.segment.sequence = next_[going.segment.queue]++;
	outgoing_ = std::move(going);
	requests_.pop_front();
	answered_last_ = false;
	return true;
}

bool Stream::make_segment()
{
	Outgoing &going = *outgoing_;
	Segment &segment = going.segment;
	const bool tagged = is_tagged(segment.opcode);
	const std::size_t room = most_ulpdu_ - (tagged ? kTaggedHeader : kUntaggedHeader);
	const auto size = static_cast<std::uint32_t>(
		std::min<std::size_t>(room, going.source.length - going.done));
	Bytes payload(size);
	if (size != 0 && !going.source.read(going.done, payload)) {
		// In a Read Response, the host has already reported the error. In a request of this
		// side, the source cannot be read.
		if (!ended_)
			fail(errors::kLocalCatastrophic);
		return taken_ < output_.size();
	}
	segment.payload = payload;
	segment.last = going.done + size == going.source.length;
	output_ = writer_->frame(encode(segment));
	taken_ = 0;
	going.done += size;
	segment.offset += size;
	segment.message_offset += size;
	if (segment.last) {
		const auto id = going.id;
		outgoing_.reset();
		if (id)
			host_.completed(*id);
	}
	return true;
}

// The Terminate follows the FPDU that is being sent, and nothing follows the Terminate.
void Stream::fail(const Error &error)
{
	if (ended_)
		return;
	const Bytes payload = encode(error);
	const Segment segment{.opcode = Opcode::terminate,
			      .last = true,
			      .queue = kTerminateQueue,
			      .sequence = 1,
			      .payload = payload};
	const Bytes last = writer_->frame(encode(segment));
	output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(taken_));
	taken_ = 0;
	output_.insert(output_.end(), last.begin(), last.end());
	end({End::Kind::failed, error});
}

void Stream::end(const End &how)
{
	if (std::exchange(ended_, true))
		return;
	state_ = State::over;
	finishing_ = true;
	requests_.clear();
	to_answer_.clear();
	host_.ended(how);
}

} // namespace weft::iwarp
