// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decides which of the connections that a trunk accepts may begin a handshake, so that clients
// without the key neither keep the trunk's thread busy nor prevent the other daemon from
// connecting.
//
// Connections are counted in windows of kAdmissionWindow. A network (Address::network()) that has
// begun few handshakes in the window may always begin another one. The other networks share the
// remaining handshakes of the window.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace weft::trunk
{

constexpr std::chrono::milliseconds kAdmissionWindow{100};
// Maximum number of connections accepted in a window. Others wait in the kernel, whose queue has
// kBacklog entries.
constexpr unsigned kMostAccepted = 500;
// Maximum number of handshakes in a window, in total and for one network, and the number that every
// network may always start.
constexpr unsigned kMostAdmitted = 50;
constexpr unsigned kMostOfNetwork = 25;
constexpr unsigned kAlwaysOfNetwork = 2;

class Admission
{
public:
	// Counts a connection. Returns false if it must be closed at once.
	bool admit(const std::string &network)
	{
		accepted_++;
		unsigned &own = of_network_[network];
		if (own >= kAlwaysOfNetwork &&
		    (own >= kMostOfNetwork || admitted_ >= kMostAdmitted))
			return false;
		own++;
		admitted_++;
		return true;
	}
	// Returns true if no more connections may be accepted in this window.
	bool full() const { return accepted_ >= kMostAccepted; }
	void begin_window()
	{
		accepted_ = admitted_ = 0;
		of_network_.clear();
	}

private:
	unsigned accepted_ = 0, admitted_ = 0;
	std::map<std::string, unsigned> of_network_;
};

} // namespace weft::trunk
