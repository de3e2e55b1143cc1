// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Owns the objects that connect the card's iWARP streams to TCP (iwarp::Carrier), one for each
// connection. A carrier is destroyed after its connection has ended and no function of the carrier
// is running. Also defines SilentHost, the user of streams that no queue pair owns: it refuses all
// accesses and ignores all events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/iwarp_tcp/carrier.hpp"

namespace weft::amso1100
{

class Connections
{
public:
	explicit Connections(Loop &loop)
	    : loop_(loop), reaper_(loop, [this] {
		      std::erase_if(carriers_, [](const auto &each) { return each->over(); });
	      })
	{
	}

	// The owner may use the carrier until the carrier has ended or gets another owner.
	iwarp::Carrier &make(const iwarp::StreamConfig &config, iwarp::Host &owner)
	{
		return *carriers_.emplace_back(std::make_unique<iwarp::Carrier>(
			loop_, config, owner, [this] { reaper_.signal(); }));
	}
	// Removes a carrier that was never connected.
	void forget(const iwarp::Carrier &carrier)
	{
		std::erase_if(carriers_, [&](const auto &each) { return each.get() == &carrier; });
	}
	std::size_t size() const { return carriers_.size(); }

private:
	Loop &loop_;
	std::vector<std::unique_ptr<iwarp::Carrier>> carriers_;
	Wakeup reaper_;
};

// A host that permits nothing and ignores all events.
class SilentHost : public iwarp::Host
{
public:
	void established(const iwarp::StartFrame &) override {}
	void refused(const iwarp::StartFrame &) override {}
	iwarp::Access place(iwarp::Stag, std::uint64_t, iwarp::View) override
	{
		return iwarp::Access::refused;
	}
	iwarp::Access fetch(iwarp::Stag, std::uint64_t, std::span<std::uint8_t>) override
	{
		return iwarp::Access::refused;
	}
	iwarp::Access invalidate(iwarp::Stag) override { return iwarp::Access::refused; }
	iwarp::Access place_response(iwarp::Stag, std::uint64_t, iwarp::View) override
	{
		return iwarp::Access::refused;
	}
	std::optional<std::uint64_t> next_receive() override { return std::nullopt; }
	bool place_message(std::uint64_t, iwarp::View) override { return false; }
	void received(std::uint64_t, bool, std::optional<iwarp::Stag>) override {}
	void completed(std::uint64_t) override {}
};

} // namespace weft::amso1100
