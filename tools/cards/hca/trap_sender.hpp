// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends the traps of one port (IBA 13.4.9, 14.3). Each trap is repeated until the manager represses
// it. The rate of all traps together is limited by the subnet's timeout.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <type_traits>

#include <ib/smp.hpp>

#include "base/loop.hpp"
#include "cards/hca/port.hpp"

namespace weft::hca
{

class TrapSender
{
public:
	// Limit of repetitions without TrapRepress. A subnet manager that starts later reads the
	// state itself.
	static constexpr unsigned kMaxRepeats = 10;

	// @send sends an SMP to the subnet manager of the port. @port must outlive this object.
	TrapSender(Loop &loop, const CardPort &port, std::function<void(const ib::Smp &)> send);

	// Raises trap @number. It replaces a pending trap with the same number, so that memory use
	// does not depend on the number of causes.
	template<class Details>
	void raise(ib::TrapNumber number, ib::NoticeType type, const Details &details)
	{
		static_assert(sizeof(details) == sizeof(ib::Notice::details) &&
			      std::is_trivially_copyable_v<Details>);
		raise(number, type, reinterpret_cast<const std::uint8_t *>(&details));
	}
	// Handles a TrapRepress. Returns false if it belongs to no pending trap of this port.
	bool repress(std::uint64_t tid);
	// Drops all pending traps.
	void clear();

private:
	struct Pending {
		ib::TrapNumber number{}; // zero if none is pending
		unsigned sent = 0;
		ib::Smp smp{};
	};
	// One for each trap that a channel adapter sends: 144, 256, 257, 258.
	static constexpr std::size_t kKinds = 4;

	void raise(ib::TrapNumber number, ib::NoticeType type, const std::uint8_t *details);
	void run();
	Pending *next();
	Clock::duration interval() const;

	Loop &loop_;
	const CardPort &port_;
	const std::function<void(const ib::Smp &)> send_;
	std::array<Pending, kKinds> pending_{};
	std::size_t turn_ = 0; // the kind that was sent last
	std::uint64_t tid_ = 0;
	Clock::time_point next_send_{}; // earliest time of the next send
	Timer timer_;
};

} // namespace weft::hca
