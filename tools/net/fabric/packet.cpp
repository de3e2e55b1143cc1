// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/packet.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/wire/checksum.hpp"
#include "net/fabric/port.hpp"

namespace weft::fabric
{

Payload Payload::copy_of(std::span<const std::byte> bytes)
{
	if (bytes.empty())
		return {};
	std::shared_ptr<std::byte[]> copy =
		std::make_shared_for_overwrite<std::byte[]>(bytes.size());
	std::memcpy(copy.get(), bytes.data(), bytes.size());
	Payload payload;
	std::byte *const data = copy.get();
	payload.append({data, static_cast<std::uint32_t>(bytes.size()), std::move(copy)});
	payload.copied_ = data;
	return payload;
}

Payload Payload::owning(std::shared_ptr<const std::vector<std::byte>> bytes)
{
	Payload payload;
	const std::byte *data = bytes->data();
	auto size = static_cast<std::uint32_t>(bytes->size());
	payload.append({data, size, std::move(bytes)});
	return payload;
}

void Payload::append(Piece piece)
{
	add({piece.data, piece.size}, std::move(piece.keep), nullptr);
}

void Payload::append(std::span<const std::byte> bytes, const std::shared_ptr<Lease> &lease)
{
	/* Compare first, because sharing costs an atomic operation. */
	if (!holds_.empty() && holds_.back().lease == lease.get() && !bytes.empty()) {
		pieces_.push_back(bytes);
		size_ += static_cast<std::uint32_t>(bytes.size());
		return;
	}
	add(bytes, lease, lease.get());
}

void Payload::add(std::span<const std::byte> bytes, std::shared_ptr<const void> keep, Lease *lease)
{
	if (bytes.empty())
		return;
	pieces_.push_back(bytes);
	copied_ = nullptr;
	size_ += static_cast<std::uint32_t>(bytes.size());
	if (keep && (holds_.empty() || holds_.back().keep.get() != keep.get()))
		holds_.push_back({std::move(keep), lease});
}

std::span<std::byte> Payload::own()
{
	if (!copied_ || holds_[0].keep.use_count() != 1)
		return {};
	/*
	 * Other threads have read the bytes before they released their references. This orders
	 * their reads before the writes that follow.
	 */
	std::atomic_thread_fence(std::memory_order_acquire);
	return {copied_, size_};
}

std::size_t Payload::copy_to(std::span<std::byte> out, std::size_t offset) const
{
	std::size_t done = 0;
	const bool there = for_each([&](std::span<const std::byte> piece) {
		if (offset >= piece.size()) {
			offset -= piece.size();
			return;
		}
		std::size_t part = std::min(piece.size() - offset, out.size() - done);
		if (part != 0)
			std::memcpy(out.data() + done, piece.data() + offset, part);
		done += part;
		offset = 0;
	});
	return there ? done : 0;
}

Payload Payload::slice(std::uint32_t offset, std::uint32_t size) const
{
	Payload part;
	for (std::size_t i = 0; i < pieces_.size() && size != 0; i++) {
		std::span<const std::byte> piece = pieces_[i];
		if (offset >= piece.size()) {
			offset -= static_cast<std::uint32_t>(piece.size());
			continue;
		}
		piece = piece.subspan(offset, std::min<std::size_t>(piece.size() - offset, size));
		part.pieces_.push_back(piece);
		part.size_ += static_cast<std::uint32_t>(piece.size());
		size -= static_cast<std::uint32_t>(piece.size());
		offset = 0;
	}
	part.holds_ = holds_;
	return part;
}

void Payload::clear()
{
	pieces_.clear();
	holds_.clear();
	size_ = 0;
	copied_ = nullptr;
}

Packet::Packet(Packet &&other) noexcept
    : header_size_(other.header_size_), packets_(other.packets_), icrc_error_(other.icrc_error_),
      hops_(other.hops_), credit_vl_(other.credit_vl_), credit_borrowed_(other.credit_borrowed_),
      credit_port_(std::exchange(other.credit_port_, nullptr)), payload_(std::move(other.payload_)),
      ticket_(std::move(other.ticket_))
{
	std::memcpy(headers_.data(), other.headers_.data(), header_size_);
}

Packet &Packet::operator=(Packet &&other) noexcept
{
	if (this == &other)
		return *this;
	release_credit();
	header_size_ = other.header_size_;
	std::memcpy(headers_.data(), other.headers_.data(), header_size_);
	packets_ = other.packets_;
	icrc_error_ = other.icrc_error_;
	hops_ = other.hops_;
	credit_vl_ = other.credit_vl_;
	credit_borrowed_ = other.credit_borrowed_;
	credit_port_ = std::exchange(other.credit_port_, nullptr);
	payload_ = std::move(other.payload_);
	ticket_ = std::move(other.ticket_);
	return *this;
}

std::optional<Packet> Packet::make(const packet::Headers &headers, Payload payload,
				   packet::Error *error)
{
	std::optional<Packet> result(std::in_place);
	unsigned size = 0;
	packet::Error status = packet::build(headers, payload.size(), result->headers_.data(),
					     static_cast<unsigned>(result->headers_.size()), &size);
	if (error)
		*error = status;
	if (status != packet::Error::none)
		return std::nullopt;
	result->header_size_ = static_cast<std::uint8_t>(size);
	result->payload_ = std::move(payload);
	return result;
}

std::optional<Packet> Packet::make_run(const packet::Headers &headers, Payload payload,
				       unsigned packets)
{
	std::optional<Packet> result(std::in_place);
	unsigned size = 0;
	if (packet::build(headers, payload.size() / packets, result->headers_.data(),
			  static_cast<unsigned>(result->headers_.size()),
			  &size) != packet::Error::none)
		return std::nullopt;
	result->header_size_ = static_cast<std::uint8_t>(size);
	result->packets_ = static_cast<std::uint16_t>(packets);
	result->payload_ = std::move(payload);
	return result;
}

Packet Packet::take_first()
{
	const std::uint32_t bytes = packet_bytes();
	packet::Headers next = parse();
	packet::Headers own = next;
	own.bth.set_ack_request(false);

	Packet first;
	unsigned size = 0;
	/* This cannot fail, because the headers were built before. */
	static_cast<void>(packet::build(own, bytes, first.headers_.data(),
					static_cast<unsigned>(first.headers_.size()), &size));
	first.header_size_ = static_cast<std::uint8_t>(size);
	first.icrc_error_ = icrc_error_;
	first.hops_ = hops_;
	first.payload_ = payload_.slice(0, bytes);

	switch (ib::opcode_operation(next.bth.opcode)) {
	case ib::Operation::send_first:
	case ib::Operation::write_first:
	case ib::Operation::read_response_first:
		/* The opcode of a MIDDLE packet follows that of the FIRST packet. */
		next.bth.opcode++;
		break;
	default:
		break;
	}
	next.bth.set_psn(next.bth.psn() + 1);
	static_cast<void>(packet::build(next, bytes, headers_.data(),
					static_cast<unsigned>(headers_.size()), &size));
	header_size_ = static_cast<std::uint8_t>(size);
	packets_--;
	payload_ = payload_.slice(bytes, payload_.size() - bytes);
	return first;
}

std::uint64_t Packet::wire_words_of_run() const
{
	const std::uint64_t first = lrh().length();
	/* Only the first packet has extension headers. */
	return packets_ * first - (packets_ - 1u) * (extension().size() / 4);
}

std::optional<Packet> Packet::from_wire(std::span<const std::byte> bytes, packet::Error *error)
{
	const auto *data = reinterpret_cast<const std::uint8_t *>(bytes.data());
	auto size = static_cast<unsigned>(bytes.size());
	packet::Headers headers;
	packet::Layout layout{};
	packet::Error status = packet::parse(data, size, size, headers, layout);
	if (error)
		*error = status;
	if (status != packet::Error::none)
		return std::nullopt;

	std::optional<Packet> result(std::in_place);
	std::memcpy(result->headers_.data(), data, layout.header_bytes);
	result->header_size_ = static_cast<std::uint8_t>(layout.header_bytes);
	result->payload_ =
		Payload::copy_of(bytes.subspan(layout.header_bytes, layout.payload_bytes));
	std::uint32_t icrc = packet::icrc_of(data, layout.header_bytes, size - ib::icrc_bytes);
	for (unsigned i = 0; i < ib::icrc_bytes; i++)
		if (data[size - ib::icrc_bytes + i] != static_cast<std::uint8_t>(icrc >> (8 * i)))
			result->icrc_error_ = true;
	return result;
}

namespace
{

/* Returns true if a packet with this opcode can be the first of a run. */
bool begins_run(std::uint8_t opcode)
{
	switch (ib::opcode_operation(opcode)) {
	case ib::Operation::send_first:
	case ib::Operation::send_middle:
	case ib::Operation::write_first:
	case ib::Operation::write_middle:
	case ib::Operation::read_response_first:
	case ib::Operation::read_response_middle:
		return true;
	default:
		return false;
	}
}

} // namespace

std::optional<Packet> Packet::from_headers(std::span<const std::byte> bytes, Payload payload,
					   unsigned packets, bool icrc_error, std::uint8_t hops)
{
	const auto *data = reinterpret_cast<const std::uint8_t *>(bytes.data());
	const auto size = static_cast<unsigned>(bytes.size());
	std::optional<Packet> result(std::in_place);
	if (size < sizeof(ib::Lrh) || size > result->headers_.size() || packets == 0 ||
	    packets > UINT16_MAX || payload.size() % packets != 0)
		return std::nullopt;
	std::memcpy(result->headers_.data(), data, size);
	packet::Headers headers;
	packet::Layout layout{};
	if (packet::parse(data, size, result->wire_bytes(), headers, layout) !=
		    packet::Error::none ||
	    layout.header_bytes != size || layout.payload_bytes != payload.size() / packets)
		return std::nullopt;
	if (packets > 1 &&
	    (!begins_run(headers.bth.opcode) || payload.empty() || layout.pad_bytes != 0))
		return std::nullopt;
	result->header_size_ = static_cast<std::uint8_t>(size);
	result->packets_ = static_cast<std::uint16_t>(packets);
	result->payload_ = std::move(payload);
	result->icrc_error_ = icrc_error;
	result->hops_ = hops;
	return result;
}

Packet Packet::clone() const
{
	Packet copy;
	copy.header_size_ = header_size_;
	std::memcpy(copy.headers_.data(), headers_.data(), header_size_);
	copy.packets_ = packets_;
	copy.icrc_error_ = icrc_error_;
	copy.hops_ = hops_;
	copy.payload_ = payload_;
	copy.ticket_ = ticket_;
	return copy;
}

packet::Headers Packet::parse() const
{
	packet::Headers headers;
	packet::Layout layout;
	/* This cannot fail, because the headers were built or parsed before. */
	static_cast<void>(
		packet::parse(headers_.data(), header_size_, wire_bytes(), headers, layout));
	return headers;
}

std::vector<std::byte> Packet::to_wire() const
{
	std::vector<std::byte> wire(wire_bytes() + ib::vcrc_bytes);
	auto *bytes = reinterpret_cast<std::uint8_t *>(wire.data());
	std::memcpy(bytes, headers_.data(), header_size_);
	payload_.copy_to(std::span(wire).subspan(header_size_, packet_bytes()));

	unsigned icrc_at = wire_bytes() - ib::icrc_bytes;
	std::uint32_t icrc = packet::icrc_of(bytes, header_size_, icrc_at);
	if (icrc_error_)
		icrc = ~icrc;
	for (unsigned i = 0; i < ib::icrc_bytes; i++)
		bytes[icrc_at + i] = static_cast<std::uint8_t>(icrc >> (8 * i));
	std::uint16_t vcrc = packet::vcrc_of(bytes, wire_bytes());
	bytes[wire_bytes()] = static_cast<std::uint8_t>(vcrc);
	bytes[wire_bytes() + 1] = static_cast<std::uint8_t>(vcrc >> 8);
	return wire;
}

void Packet::hold_credit(Port &receiver, std::uint8_t vl, bool borrowed)
{
	/* The new credit is taken before the old one is returned. */
	Port *before = std::exchange(credit_port_, &receiver);
	std::uint8_t vl_before = std::exchange(credit_vl_, vl);
	const bool borrowed_before = std::exchange(credit_borrowed_, borrowed);
	if (before && !borrowed_before)
		before->return_credits(vl_before, 1);
}

void Packet::take_borrowed_credit()
{
	credit_borrowed_ = false;
	credit_port_->credits_[credit_vl_].fetch_sub(1, std::memory_order_seq_cst);
}

void Packet::release_credit()
{
	Port *const port = std::exchange(credit_port_, nullptr);
	if (port && !credit_borrowed_)
		port->return_credits(credit_vl_, 1);
}

void Packet::release_credits(std::span<Packet> packets)
{
	while (!packets.empty()) {
		Port *const port = packets.front().credit_port_;
		const std::uint8_t vl = packets.front().credit_vl_;
		int count = 0;
		for (; !packets.empty() && packets.front().credit_port_ == port &&
		       packets.front().credit_vl_ == vl;
		     packets = packets.subspan(1)) {
			packets.front().credit_port_ = nullptr;
			if (!packets.front().credit_borrowed_)
				count++;
		}
		if (port && count != 0)
			port->return_credits(vl, count);
	}
}

} // namespace weft::fabric
