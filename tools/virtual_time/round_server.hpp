// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the server of the rounds (rounds.hpp), to which each place of a lab connects. If a
// place disconnects or violates the protocol, the lab ends at all places.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "virtual_time/rounds.hpp"

namespace weft::virtual_time
{

class RoundServer
{
public:
	// Limit of connections that have not identified themselves.
	static constexpr std::size_t kMostUnidentified = 64;

	// Listens at @socket, on a thread of its own. @lab identifies the lab: a place of another
	// one is refused.
	RoundServer(std::vector<std::string> places, std::vector<RoundTrunk> trunks,
		    std::uint64_t lab, const std::filesystem::path &socket);
	~RoundServer();
	RoundServer(const RoundServer &) = delete;
	RoundServer &operator=(const RoundServer &) = delete;

	// Waits until the lab has ended and all places have disconnected. Returns false after
	// @limit of real time.
	bool await_end(std::chrono::milliseconds limit) const;
	// Returns the places that have not joined or reported, if the lab has not ended.
	std::string awaited() const;
	std::uint64_t rounds() const;

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::virtual_time
