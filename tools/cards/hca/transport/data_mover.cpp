// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/data_mover.hpp"

#include <algorithm>
#include <cstring>

namespace weft::hca::transport
{

namespace
{

/*
 * Fills a list of segments one after the other. Source and destination may overlap, because a guest
 * can send to itself.
 */
class Filler
{
public:
	explicit Filler(std::span<const MemorySegment> segments) : segments_(segments) {}

	void put(std::span<const std::byte> bytes)
	{
		while (!bytes.empty() && at_ < segments_.size()) {
			const MemorySegment &segment = segments_[at_];
			std::size_t n = std::min(bytes.size(), segment.size - used_);
			std::memmove(segment.data + used_, bytes.data(), n);
			bytes = bytes.subspan(n);
			used_ += n;
			if (used_ == segment.size) {
				at_++;
				used_ = 0;
			}
		}
	}

private:
	std::span<const MemorySegment> segments_;
	std::size_t at_ = 0;
	std::size_t used_ = 0;
};

/* Calls fn(piece, offset in the piece, bytes) for each part of a range of the list. */
template<class Fn>
MemoryError for_stretch(const std::vector<Piece> &pieces, std::uint64_t offset,
			std::uint64_t length, Fn &&fn)
{
	for (const Piece &piece : pieces) {
		if (length == 0)
			break;
		if (offset >= piece.length) {
			offset -= piece.length;
			continue;
		}
		std::uint64_t n = std::min<std::uint64_t>(piece.length - offset, length);
		MemoryError error = fn(piece, offset, n);
		if (error != MemoryError::none)
			return error;
		offset = 0;
		length -= n;
	}
	return MemoryError::none;
}

KeyUse with(const KeyUse &user, std::uint32_t key, KeyAccess access)
{
	KeyUse use = user;
	use.key = key;
	use.access = access;
	return use;
}

} // namespace

fabric::Payload OwnedBytes::payload() const
{
	fabric::Payload payload;
	if (size != 0)
		payload.append({data.get(), static_cast<std::uint32_t>(size), data});
	return payload;
}

MemoryError DataMover::refer(Qp &qp, const SendRequest &request, std::uint64_t offset,
			     std::uint32_t length, fabric::Payload &out)
{
	return for_stretch(
		request.pieces, offset, length,
		[&](const Piece &piece, std::uint64_t from, std::uint64_t n) {
			if (piece.is_inline) {
				OwnedBytes copy = OwnedBytes::allocate(n);
				std::memcpy(copy.data.get(),
					    request.inline_data.data() + piece.address + from, n);
				out.append({copy.data.get(), static_cast<std::uint32_t>(n),
					    copy.data});
				return MemoryError::none;
			}
			return refer(qp, qp.key_use(piece.lkey, KeyAccess::local_read),
				     piece.address + from, static_cast<std::uint32_t>(n), out);
		});
}

MemoryError DataMover::refer(Qp &qp, const KeyUse &use, std::uint64_t address, std::uint32_t length,
			     fabric::Payload &out)
{
	segments_.clear();
	MemoryError error = memory_.translate(use, address, length, segments_);
	if (error != MemoryError::none)
		return error;
	std::shared_ptr<fabric::Lease> lease;
	const MemoryMapping *of = nullptr;
	for (const MemorySegment &segment : segments_) {
		if (segment.mapping.get() != of) {
			of = segment.mapping.get();
			lease = leases_.get(qp, use.key, segment.mapping);
		}
		if (lease) {
			out.append({segment.data, segment.size}, lease);
			continue;
		}
		OwnedBytes copy = OwnedBytes::allocate(segment.size);
		std::memcpy(copy.data.get(), segment.data, segment.size);
		out.append({copy.data.get(), static_cast<std::uint32_t>(segment.size), copy.data});
	}
	segments_.clear();
	return MemoryError::none;
}

MemoryError DataMover::gather(const SendRequest &request, std::uint64_t offset, const KeyUse &user,
			      std::span<std::byte> out)
{
	return for_stretch(
		request.pieces, offset, out.size(),
		[&](const Piece &piece, std::uint64_t from, std::uint64_t n) {
			if (piece.is_inline) {
				std::memcpy(out.data(),
					    request.inline_data.data() + piece.address + from, n);
				out = out.subspan(n);
				return MemoryError::none;
			}
			segments_.clear();
			MemoryError error =
				memory_.translate(with(user, piece.lkey, KeyAccess::local_read),
						  piece.address + from, n, segments_);
			for (const MemorySegment &segment : segments_) {
				std::memcpy(out.data(), segment.data, segment.size);
				out = out.subspan(segment.size);
			}
			segments_.clear();
			return error;
		});
}

MemoryError DataMover::locate(const std::vector<Piece> &pieces, std::uint64_t offset,
			      std::uint64_t length, const KeyUse &user)
{
	segments_.clear();
	return for_stretch(pieces, offset, length,
			   [&](const Piece &piece, std::uint64_t from, std::uint64_t n) {
				   return memory_.translate(
					   with(user, piece.lkey, KeyAccess::local_write),
					   piece.address + from, n, segments_);
			   });
}

MemoryError DataMover::scatter(const std::vector<Piece> &pieces, std::uint64_t offset,
			       const fabric::Payload &payload, const KeyUse &user)
{
	MemoryError error = locate(pieces, offset, payload.size(), user);
	if (error == MemoryError::none) {
		Filler filler(segments_);
		if (!payload.for_each([&](std::span<const std::byte> bytes) { filler.put(bytes); }))
			error = MemoryError::taken_back;
	}
	segments_.clear();
	return error;
}

MemoryError DataMover::scatter(const std::vector<Piece> &pieces, std::uint64_t offset,
			       std::span<const std::byte> bytes, const KeyUse &user)
{
	MemoryError error = locate(pieces, offset, bytes.size(), user);
	if (error == MemoryError::none)
		Filler(segments_).put(bytes);
	segments_.clear();
	return error;
}

MemoryError DataMover::write(const KeyUse &use, std::uint64_t address,
			     const fabric::Payload &payload, std::uint32_t skip)
{
	segments_.clear();
	MemoryError error = memory_.translate(use, address, payload.size() - skip, segments_);
	if (error == MemoryError::none) {
		Filler filler(segments_);
		const bool there = payload.for_each([&](std::span<const std::byte> bytes) {
			std::size_t passed = std::min<std::size_t>(skip, bytes.size());
			skip -= static_cast<std::uint32_t>(passed);
			filler.put(bytes.subspan(passed));
		});
		if (!there)
			error = MemoryError::taken_back;
	}
	segments_.clear();
	return error;
}

MemoryError DataMover::probe(const KeyUse &use, std::uint64_t address, std::uint64_t length)
{
	if (length == 0)
		return MemoryError::none;
	if (address + (length - 1) < address)
		return MemoryError::bounds;
	ranges_.clear();
	MemoryError error = memory_.resolve(use, address, 1, ranges_);
	if (error == MemoryError::none)
		error = memory_.resolve(use, address + (length - 1), 1, ranges_);
	return error;
}

std::optional<std::uint64_t> DataMover::word_address(const KeyUse &use, std::uint64_t address)
{
	ranges_.clear();
	if (memory_.resolve(use, address, sizeof(std::uint64_t), ranges_) != MemoryError::none ||
	    ranges_.size() != 1)
		return std::nullopt;
	return ranges_.front().address;
}

} // namespace weft::hca::transport
