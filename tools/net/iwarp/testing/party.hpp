// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a stream and its user (class Host) with registered memory regions, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "net/iwarp/stream.hpp"

namespace weft::iwarp::testing
{

// A host with memory regions; derived classes forward calls to its stream.
class Memory : public Host
{
public:
	struct Region {
		Bytes bytes{};
		std::uint64_t base = 0;
		bool writable = true, readable = true;
	};
	struct Message {
		Bytes bytes;
		bool solicited;
		std::optional<Stag> invalidated;
	};

	virtual void post(Request request) = 0;
	virtual void accept(const Bytes &private_data) = 0;

	void requested(const StartFrame &frame) override
	{
		request = frame;
		if (accepts)
			accept(answer);
	}
	void established(const StartFrame &frame) override { reply = frame; }
	void refused(const StartFrame &frame) override { refusal = frame; }

	Access place(Stag stag, std::uint64_t offset, View payload) override
	{
		return access(stag, offset, payload.size(), true,
			      [&](std::uint8_t *at) { std::ranges::copy(payload, at); });
	}
	Access place_response(Stag stag, std::uint64_t offset, View payload) override
	{
		return access(stag, offset, payload.size(), true,
			      [&](std::uint8_t *at) { std::ranges::copy(payload, at); });
	}
	Access fetch(Stag stag, std::uint64_t offset, std::span<std::uint8_t> into) override
	{
		return access(stag, offset, into.size(), false, [&](const std::uint8_t *at) {
			std::copy_n(at, into.size(), into.begin());
		});
	}
	Access invalidate(Stag stag) override
	{
		return regions.erase(stag) ? Access::done : Access::invalid_stag;
	}

	std::optional<std::uint64_t> next_receive() override
	{
		if (receives.empty())
			return std::nullopt;
		const std::uint64_t room = receives.front();
		receives.pop_front();
		partial.clear();
		return room;
	}
	bool place_message(std::uint64_t offset, View payload) override
	{
		if (offset != partial.size())
			return false;
		partial.insert(partial.end(), payload.begin(), payload.end());
		return true;
	}
	void received(std::uint64_t, bool solicited, std::optional<Stag> invalidated) override
	{
		messages.push_back({std::exchange(partial, {}), solicited, invalidated});
	}
	void completed(std::uint64_t id) override { done.push_back(id); }
	void ended(const End &how) override { end = how; }

	void send(Bytes bytes, Opcode opcode = Opcode::send, Stag stag = 0)
	{
		post({.opcode = opcode,
		      .id = ++last_id,
		      .source = source_of(std::move(bytes)),
		      .stag = stag});
	}
	void write(Bytes bytes, Stag stag, std::uint64_t offset)
	{
		post({.opcode = Opcode::write,
		      .id = ++last_id,
		      .source = source_of(std::move(bytes)),
		      .stag = stag,
		      .offset = offset});
	}
	void read(const ReadRequest &what, bool fence = false)
	{
		post({.opcode = Opcode::read_request,
		      .id = ++last_id,
		      .fence = fence,
		      .read = what});
	}
	static Source source_of(Bytes bytes)
	{
		const auto length = static_cast<std::uint32_t>(bytes.size());
		return {.length = length,
			.read = [bytes = std::move(bytes)](std::uint32_t offset,
							   std::span<std::uint8_t> into) {
				std::copy_n(bytes.begin() + offset, into.size(), into.begin());
				return true;
			}};
	}
	bool accepts = true;
	Bytes answer;
	std::map<Stag, Region> regions;
	std::deque<std::uint64_t> receives;
	std::optional<StartFrame> request, reply, refusal;
	std::vector<Message> messages;
	std::vector<std::uint64_t> done;
	std::optional<End> end;
	std::uint64_t last_id = 0;
	Bytes partial;

private:
	template<typename Do>
	Access access(Stag stag, std::uint64_t offset, std::size_t size, bool writes, Do &&what)
	{
		const auto found = regions.find(stag);
		if (found == regions.end())
			return Access::invalid_stag;
		Region &region = found->second;
		if (!(writes ? region.writable : region.readable))
			return Access::refused;
		if (offset < region.base || offset - region.base > region.bytes.size() ||
		    size > region.bytes.size() - (offset - region.base))
			return Access::bounds;
		what(region.bytes.data() + (offset - region.base));
		return Access::done;
	}
};

class Party final : public Memory
{
public:
	explicit Party(const StreamConfig &config) : stream(config, *this) {}

	void post(Request asked) override { stream.post(std::move(asked)); }
	void accept(const Bytes &private_data) override { stream.accept(private_data); }
	// Returns all data that the stream wants to send now.
	Bytes output(std::size_t most = SIZE_MAX)
	{
		Bytes all;
		Bytes part(std::min<std::size_t>(most, 4096));
		while (all.size() < most) {
			const std::size_t size = stream.take(
				std::span(part).first(std::min(part.size(), most - all.size())));
			if (size == 0)
				break;
			all.insert(all.end(), part.begin(),
				   part.begin() + static_cast<std::ptrdiff_t>(size));
		}
		return all;
	}

	Stream stream;
};

// Moves bytes in both directions, @most at a time, until neither side has output. With @log, moves
// one FPDU at a time and appends it to @log.
inline void pump(Party &a, Party &b, std::size_t most = SIZE_MAX,
		 std::vector<std::pair<int, Bytes>> *log = nullptr)
{
	for (bool moved = true; moved;) {
		moved = false;
		for (const int side : {0, 1}) {
			Party &from = side ? b : a, &to = side ? a : b;
			if (log) {
				Bytes part(kMostUlpdu + 1000);
				while (const std::size_t size = from.stream.take(part)) {
					log->emplace_back(
						side,
						Bytes(part.begin(),
						      part.begin() +
							      static_cast<std::ptrdiff_t>(size)));
					to.stream.feed(log->back().second);
					moved = true;
				}
				continue;
			}
			const Bytes bytes = from.output(most);
			if (bytes.empty())
				continue;
			moved = true;
			to.stream.feed(bytes);
		}
	}
}

inline Bytes pattern(std::size_t size, unsigned seed = 1)
{
	Bytes bytes(size);
	std::uint32_t state = seed * 2654435761u + 1;
	for (std::uint8_t &byte : bytes) {
		state = state * 1664525 + 1013904223;
		byte = static_cast<std::uint8_t>(state >> 24);
	}
	return bytes;
}

} // namespace weft::iwarp::testing
