// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a time server, which gives time slices to User-Mode Linux guests. One guest runs at a
// time: the one with the earliest deadline, and among those with equal deadlines the one with the
// lowest number.
//
// If a guest disconnects or violates the protocol, the run ends for all guests, because the others
// would wait for ever. A guest exits when its time server closes the connection.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weft
{
class Loop;
}

namespace weft::virtual_time
{

class SharedTime;

// Limits for the answer of a member. `time` is real time, because the member has nothing else to
// do. `messages` is the number of messages from all members; an answer needs only a few.
struct AnswerLimits {
	std::chrono::milliseconds time = std::chrono::minutes(1);
	unsigned messages = 10000;
};

class Scheduler
{
public:
	// Limit of connections that have not identified themselves. Connections beyond it are
	// refused.
	static constexpr std::size_t kMostUnidentified = 8;
	// Number of logged connections whose number belongs to no member or is in use.
	static constexpr unsigned kMostLogged = 8;

	// Listens at @socket for the members 1, 2, …, whose names are @names. They start when all
	// are connected. @time is @loop's environment. @ended is called once, on the loop, with the
	// member that has ended the run, when and how: "node1 has left the time server at
	// 1.000000000 s". Created, used and destroyed on the loop.
	Scheduler(Loop &loop, SharedTime &time, std::vector<std::string> names,
		  const std::filesystem::path &socket,
		  std::function<void(const std::string &reason)> ended, AnswerLimits limits = {});
	~Scheduler();
	Scheduler(const Scheduler &) = delete;
	Scheduler &operator=(const Scheduler &) = delete;

	// Returns the member that the scheduler waits for, and since when ("node2, whose time slice
	// began at 1.000000000 s"), or the members that have not joined. Empty if it waits for
	// none.
	std::string awaited() const;

	// Returns the number of time slices so far.
	std::uint64_t time_slices() const;

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace weft::virtual_time
