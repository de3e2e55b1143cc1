// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the MSI-X table of a PCI function, which the guest writes by commands, and the
// delivery of the function's interrupts as messages with the address and data of the table. INTx is
// not supported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bus/pci/interrupts.hpp"

namespace weft::vhost_user
{

// MessagePort - sends messages to the guest.
class MessagePort
{
public:
	virtual ~MessagePort() = default;
	// Returns false if the guest has no space for it now.
	virtual bool send_message(std::uint64_t address, std::uint32_t data) = 0;
};

class Interrupts final : public pci::Interrupts
{
public:
	explicit Interrupts(unsigned vectors);

	// Sets the port of the connected guest. The port reports when it has space again, and
	// disconnects itself when the guest does.
	void connect(MessagePort &port) { port_ = &port; }
	void disconnect(const MessagePort &port);
	// Sends interrupts that are pending and not masked, as far as there is space.
	void flush();

	bool carries_intx() const override { return false; }
	void raise_msix(unsigned vector) override;
	bool pending(std::size_t vector) const override;
	void set_msix_masked(bool masked) override;
	void clear_pending() override;
	void read_table(std::uint64_t offset, std::span<std::byte> data) const override;
	void write_table(std::uint64_t offset, std::span<const std::byte> data) override;
	void set_intx(bool) override {}
	void set_intx_disabled(bool) override {}
	// After a reset all vectors are masked (PCI 3.0, 6.8.2.9).
	void reset() override;
	void release() override;

private:
	struct Entry {
		std::uint64_t address = 0;
		std::uint32_t data = 0;
		std::uint32_t control = kMasked;

		static constexpr std::uint32_t kMasked = 1;
	};
	static_assert(sizeof(Entry) == 16);

	bool try_to_send(unsigned vector);

	std::vector<Entry> table_;
	std::vector<bool> pending_;
	bool masked_ = false;
	MessagePort *port_ = nullptr;
};

} // namespace weft::vhost_user
