// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the card's end of a fabric link. Packets and link changes are received on any thread
// and handled on the card's loop, a limited number at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/mutex.hpp"
#include "base/loop.hpp"
#include "net/fabric/port.hpp"

namespace weft::hca
{

class PortLink final : public fabric::PortSink
{
public:
	struct Handlers {
		std::function<void(fabric::Packet &&)> packet;
		std::function<void(std::uint8_t vl)> credit;
		// Called when the state of the link has changed. @was_down is true if the link has
		// been down since the last call.
		std::function<void(bool was_down)> link;
	};

	// Attaches to @port until the object is destroyed. Handlers run on @loop.
	PortLink(Loop &loop, fabric::Port &port, Handlers handlers);
	~PortLink() override;

	// Runs @task on the loop after the current handler.
	void later(std::function<void()> task);
	// Discards packets that have arrived and were not delivered to the handlers, and tasks that
	// have not run.
	void drop();

private:
	// Number of packets that are delivered before the loop runs other tasks.
	static constexpr std::size_t kSlice = 64;

	void receive(fabric::Packet &&packet) override;
	void link_changed(bool up) override;
	void credit_available(std::uint8_t vl) override;
	void drain();

	fabric::Port &port_;
	const Handlers handlers_;

	Mutex mutex_;
	std::vector<fabric::Packet> inbox_ WEFT_GUARDED_BY(mutex_);
	std::vector<std::function<void()>> tasks_ WEFT_GUARDED_BY(mutex_);
	std::uint16_t credits_ WEFT_GUARDED_BY(mutex_) = 0; // a bit for each VL
	bool link_event_ WEFT_GUARDED_BY(mutex_) = false;
	bool was_down_ WEFT_GUARDED_BY(mutex_) = false;

	std::vector<fabric::Packet> batch_; // taken from the inbox, on the loop
	std::size_t next_ = 0;              // index of the first packet that was not delivered
	Wakeup wakeup_;
};

} // namespace weft::hca
