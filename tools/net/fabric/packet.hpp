// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines a packet in flight: its headers in wire format, inside the object, and a payload that is
 * referenced rather than copied.
 *
 * The pieces of the payload may be in a guest's memory. The code that builds a packet gives each
 * piece an owner (`keep`) that keeps the memory valid. The owner is released with the last copy of
 * the packet, on any thread. Memory that the guest may need back earlier is leased (see
 * fabric::Lease).
 *
 * CRCs are computed only where they are needed: for a capture, or where a fault is injected.
 */
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/wire/headers.hpp"
#include "net/fabric/lease.hpp"
#include <ib/packet.hpp>

namespace weft::fabric
{

class Port;
struct MulticastTicket;

/* A container for a few objects in place, and any number on the heap. */
template<class T, std::size_t N>
class Few
{
public:
	Few() = default;
	Few(const Few &) = default;
	Few &operator=(const Few &) = default;
	/* Moves all objects in place, used or not, because this takes less time than a loop. */
	Few(Few &&other) noexcept
	    : first_(std::move(other.first_)), count_(std::exchange(other.count_, 0)),
	      more_(std::move(other.more_))
	{
	}
	Few &operator=(Few &&other) noexcept
	{
		if (this != &other) {
			first_ = std::move(other.first_);
			count_ = std::exchange(other.count_, 0);
			more_ = std::move(other.more_);
			other.more_.clear();
		}
		return *this;
	}

	void push_back(T object)
	{
		if (count_ < N)
			first_[count_++] = std::move(object);
		else
			more_.push_back(std::move(object));
	}
	std::size_t size() const { return count_ + more_.size(); }
	bool empty() const { return count_ == 0; }
	const T &operator[](std::size_t i) const { return i < N ? first_[i] : more_[i - N]; }
	const T &back() const { return (*this)[size() - 1]; }
	void clear()
	{
		for (unsigned i = 0; i < count_; i++)
			first_[i] = T{};
		count_ = 0;
		more_.clear();
	}

private:
	std::array<T, N> first_{};
	unsigned count_ = 0;
	std::vector<T> more_;
};

/*
 * A sequence of pieces, which are shared and immutable for the packet. When a lease ends, its bytes
 * become inaccessible for all packets that refer to them.
 */
class Payload
{
public:
	/* @keep keeps `data` valid. It may be null only for memory that outlives the fabric. */
	struct Piece {
		const std::byte *data = nullptr;
		std::uint32_t size = 0;
		std::shared_ptr<const void> keep;
	};

	Payload() = default;
	Payload(const Payload &) = default;
	Payload &operator=(const Payload &) = default;
	Payload(Payload &&other) noexcept
	    : pieces_(std::move(other.pieces_)), holds_(std::move(other.holds_)),
	      size_(std::exchange(other.size_, 0)), copied_(std::exchange(other.copied_, nullptr))
	{
	}
	Payload &operator=(Payload &&other) noexcept
	{
		pieces_ = std::move(other.pieces_);
		holds_ = std::move(other.holds_);
		size_ = std::exchange(other.size_, 0);
		copied_ = std::exchange(other.copied_, nullptr);
		return *this;
	}
	/* Creates a payload of one piece, which is a copy of `bytes`. */
	static Payload copy_of(std::span<const std::byte> bytes);
	/* Creates a payload of one piece, which shares `bytes`. */
	static Payload owning(std::shared_ptr<const std::vector<std::byte>> bytes);

	void append(Piece piece);
	/* Appends a piece of leased memory. */
	void append(std::span<const std::byte> bytes, const std::shared_ptr<Lease> &lease);
	std::uint32_t size() const { return size_; }
	/* Returns all bytes in place if they are contiguous and not leased, or nothing. */
	std::span<const std::byte> together() const
	{
		if (pieces_.size() != 1 || (holds_.size() != 0 && holds_[0].lease))
			return {};
		return pieces_[0];
	}
	/* Returns the bytes for writing, if they are a private copy that no other packet shares. */
	std::span<std::byte> own();
	bool empty() const { return size_ == 0; }

	/*
	 * Calls fn(std::span<const std::byte>) for each piece in order. @fn may only copy, because
	 * the lender of the bytes may be waiting for it. Returns false, without a call, if a lease
	 * has ended.
	 */
	template<class Fn>
	[[nodiscard]] bool for_each(Fn &&fn) const
	{
		const Reading reading(*this);
		if (!reading)
			return false;
		for (std::size_t i = 0; i < pieces_.size(); i++)
			fn(pieces_[i]);
		return true;
	}

	/*
	 * Copies out.size() bytes from `offset` on. Returns the number of copied bytes, which is 0
	 * if a lease has ended.
	 */
	std::size_t copy_to(std::span<std::byte> out, std::size_t offset = 0) const;

	/* Returns `size` bytes from `offset` on, which must exist. The slice shares the owners. */
	Payload slice(std::uint32_t offset, std::uint32_t size) const;

	/* Drops all pieces and their owners. */
	void clear();

private:
	/* An owner that keeps consecutive pieces valid, and its lease if it has one. */
	struct Hold {
		std::shared_ptr<const void> keep;
		Lease *lease = nullptr;
	};

	/* Reading - holds all leases of a payload for reading, or none if one has ended. */
	class Reading
	{
	public:
		explicit Reading(const Payload &payload) : payload_(payload)
		{
			for (; entered_ < payload.holds_.size(); entered_++)
				if (Lease *lease = payload.holds_[entered_].lease;
				    lease && !lease->enter())
					return;
			whole_ = true;
		}
		~Reading()
		{
			while (entered_-- > 0)
				if (Lease *lease = payload_.holds_[entered_].lease)
					lease->leave();
		}
		Reading(const Reading &) = delete;
		Reading &operator=(const Reading &) = delete;

		explicit operator bool() const { return whole_; }

	private:
		const Payload &payload_;
		std::size_t entered_ = 0;
		bool whole_ = false;
	};

	void add(std::span<const std::byte> bytes, std::shared_ptr<const void> keep, Lease *lease);

	Few<std::span<const std::byte>, 2> pieces_;
	Few<Hold, 2> holds_;
	std::uint32_t size_ = 0;
	/* The copy that copy_of() made; null after something was appended. */
	std::byte *copied_ = nullptr;
};

/*
 * A packet. It can be moved, and is copied only by clone(). It must be destroyed before its fabric.
 *
 * One object may represent a run of consecutive packets of a message, so that the cost of a long
 * message depends on its bytes and not on the number of packets. The headers are those of the first
 * packet. The others are MIDDLE packets with the following PSNs, and all have the same length. The
 * LAST packet of a message is never part of a run. If the headers request an acknowledgement, the
 * request is in the last packet of the run. A link that handles packets individually splits a run.
 */
class Packet
{
public:
	Packet() = default;
	Packet(Packet &&other) noexcept;
	Packet &operator=(Packet &&other) noexcept;
	Packet(const Packet &) = delete;
	Packet &operator=(const Packet &) = delete;
	~Packet() { release_credit(); }

	/*
	 * Builds a packet from headers. Returns nothing if packet::build() refuses them, with the
	 * reason in *error.
	 */
	static std::optional<Packet> make(const packet::Headers &headers, Payload payload,
					  packet::Error *error = nullptr);
	/*
	 * Builds a run of `packets` packets from their whole payload, whose length must be a
	 * multiple of `packets`. The opcode must be that of a FIRST or MIDDLE packet.
	 */
	static std::optional<Packet> make_run(const packet::Headers &headers, Payload payload,
					      unsigned packets);
	/*
	 * Returns the number of packets of the run. packet_bytes() is the size of the payload of
	 * each.
	 */
	unsigned packets() const { return packets_; }
	std::uint32_t packet_bytes() const { return payload_.size() / packets_; }
	/* Splits the first packet off a run. The rest of the run keeps the credit. */
	Packet take_first();
	/* Returns the length of all packets in words of four bytes, as counters count it. */
	std::uint64_t wire_words() const
	{
		return packets_ == 1 ? lrh().length() : wire_words_of_run();
	}

	/*
	 * Parses the bytes of a packet, from LRH to ICRC. A packet with a wrong ICRC is marked
	 * icrc_error(). Returns nothing if the packet is malformed.
	 */
	static std::optional<Packet> from_wire(std::span<const std::byte> bytes,
					       packet::Error *error = nullptr);

	/*
	 * Parses the header bytes of a packet or run from another process, with the checks of
	 * from_wire(). They contain no ICRC: @icrc_error is the sender's result, and @hops the
	 * number of switches that the packet has passed. Returns nothing if the headers are
	 * malformed, do not match the payload, or cannot belong to a run.
	 */
	static std::optional<Packet> from_headers(std::span<const std::byte> headers,
						  Payload payload, unsigned packets,
						  bool icrc_error, std::uint8_t hops);

	/*
	 * Returns a packet with the same headers and a reference to the payload, but without
	 * credit.
	 */
	Packet clone() const;

	/* Returns the header bytes, from the LRH to the last extension header. */
	std::span<const std::uint8_t> headers() const { return {headers_.data(), header_size_}; }

	/*
	 * Access the headers in place. grh() returns null without a GRH. The other headers (DETH
	 * and so on) are read with parse(). In a packet in flight, only fields that a switch or
	 * router may change (VL) may be written.
	 */
	ib::Lrh &lrh() { return *reinterpret_cast<ib::Lrh *>(headers_.data()); }
	const ib::Lrh &lrh() const { return *reinterpret_cast<const ib::Lrh *>(headers_.data()); }
	const ib::Grh *grh() const
	{
		return lrh().lnh() == ib::Lnh::global ? reinterpret_cast<const ib::Grh *>(
								headers_.data() + sizeof(ib::Lrh))
						      : nullptr;
	}
	const ib::Bth &bth() const
	{
		return *reinterpret_cast<const ib::Bth *>(headers_.data() + sizeof(ib::Lrh) +
							  (grh() ? sizeof(ib::Grh) : 0));
	}
	/*
	 * Returns the extension headers, which follow the BTH in the order that the opcode defines.
	 */
	std::span<const std::uint8_t> extension() const
	{
		unsigned at = sizeof(ib::Lrh) + (grh() ? sizeof(ib::Grh) : 0) + sizeof(ib::Bth);
		return headers().subspan(at);
	}

	/* Returns all headers. */
	packet::Headers parse() const;

	const Payload &payload() const { return payload_; }
	unsigned pad_bytes() const { return bth().pad(); }
	/*
	 * Returns the number of bytes on the wire from the LRH to the ICRC inclusive, without the
	 * VCRC.
	 */
	unsigned wire_bytes() const { return lrh().length() * 4u; }

	/*
	 * Returns the bytes of the packet (the first one of a run) from the LRH to the VCRC, with
	 * both CRCs. The payload is zero if a lease has ended.
	 */
	std::vector<std::byte> to_wire() const;

	/*
	 * Returns true if the ICRC is wrong. An end port must drop the packet (IBA 7.8.1), which
	 * Port::deliver() does.
	 */
	bool icrc_error() const { return icrc_error_; }
	void set_icrc_error() { icrc_error_ = true; }

	/* Number of switches that the packet has passed. */
	std::uint8_t hops() const { return hops_; }

	/*
	 * Drops everything except the headers and the credit, after the packet itself has been
	 * passed on.
	 */
	void strip()
	{
		payload_.clear();
		ticket_.reset();
	}

	/*
	 * Returns the credit for the space in the receiving port's buffer early, if a receiver has
	 * freed the space but keeps the packet. Otherwise the destructor returns it.
	 */
	void release_credit();
	/*
	 * Takes the credit that the packet has only borrowed (see port.hpp). Must be called before
	 * a node for which PortSink::borrows_credits() returns true keeps the packet beyond its
	 * receive(), and before a link keeps it. The number of free credits becomes negative if
	 * others have taken the last one meanwhile.
	 */
	void keep_credit()
	{
		if (credit_borrowed_ && credit_port_)
			take_borrowed_credit();
	}
	/*
	 * Returns the credits of all these packets. Consecutive ones of the same port and VL are
	 * returned at once, so that a sender that waits for them is woken once.
	 */
	static void release_credits(std::span<Packet> packets);

	/* State of a multicast packet in switches: see multicast.hpp. */
	const std::shared_ptr<MulticastTicket> &ticket() const { return ticket_; }
	void set_ticket(std::shared_ptr<MulticastTicket> ticket) { ticket_ = std::move(ticket); }

private:
	friend class Port;
	friend class Link;
	friend class Switch;

	/* @borrowed: no credit was taken, see keep_credit(). */
	void hold_credit(Port &receiver, std::uint8_t vl, bool borrowed = false);
	void take_borrowed_credit();
	std::uint64_t wire_words_of_run() const;

	/* Only header_size_ bytes are initialised, because packets are moved often. */
	std::array<std::uint8_t, ib::headers_max> headers_;
	std::uint8_t header_size_ = 0;
	std::uint16_t packets_ = 1;
	bool icrc_error_ = false;
	/*
	 * Number of switches passed. Beyond a limit the packet is dropped, because it is in a
	 * routing loop.
	 */
	std::uint8_t hops_ = 0;
	std::uint8_t credit_vl_ = 0;
	/* See keep_credit(); meaningless without a port. */
	bool credit_borrowed_ = false;
	Port *credit_port_ = nullptr;
	Payload payload_;
	/* Set for a multicast packet while it passes switches. */
	std::shared_ptr<MulticastTicket> ticket_;
};

} // namespace weft::fabric
