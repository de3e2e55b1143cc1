// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Delivers the interrupts of one device to the client through eventfds. The client owns the
// MSI-X table and its masking, so the server keeps only one eventfd per vector.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/notifier.hpp"
#include "base/file_descriptor.hpp"
#include "bus/pci/interrupts.hpp"
#include "bus/vfio-user/protocol.hpp"

namespace weft
{
class Loop;
}

namespace weft::vfio_user
{

class Interrupts final : public pci::Interrupts
{
public:
	// Used on the loop's thread only.
	Interrupts(Loop &loop, unsigned msix_vectors, bool intx);
	~Interrupts() override;

	// Returns the reply to VFIO_USER_DEVICE_GET_IRQ_INFO for interrupt type @index, which is
	// below kIrqs.
	IrqInfo info(std::uint32_t index) const;
	// Handles VFIO_USER_DEVICE_SET_IRQS. @flags_data contains the booleans of kIrqSetDataBool.
	// Returns 0, or an errno value without effect.
	int set(const IrqSet &set, std::span<const std::byte> booleans,
		std::vector<FileDescriptor> &&fds);

	// Signals the descriptor of @vector. If it has none, the vector becomes pending, and is
	// signalled as soon as it gets one.
	void raise_msix(unsigned vector) override;
	// Returns true if @vector was raised and has not been signalled yet.
	bool pending(std::size_t vector) const override
	{
		return vector < msix_.size() && msix_[vector].pending;
	}
	void clear_pending() override;

	// Sets the INTA line. A rising line is signalled once, and then masked until the client
	// unmasks it. If it is still high then, it is signalled again (VFIO_IRQ_INFO_AUTOMASKED).
	bool carries_intx() const override { return true; }
	void set_intx(bool asserted) override;
	void set_intx_disabled(bool disabled) override;

	void reset() override;
	// Closes every descriptor.
	void release() override;

private:
	class UnmaskWatch;
	struct Vector {
		std::optional<Notifier> event;
		bool pending = false;
	};

	int set_eventfds(const IrqSet &set, std::vector<FileDescriptor> &&fds);
	int watch_unmask(std::vector<FileDescriptor> &&fds);
	int set_levels(const IrqSet &set, std::span<const std::byte> booleans);
	void disable(std::uint32_t index);
	void deliver_intx();
	void unmask_intx();

	Loop &loop_;
	std::vector<Vector> msix_;
	bool has_intx_;
	std::optional<Notifier> intx_event_;
	bool intx_asserted_ = false;
	bool intx_masked_ = false;
	bool intx_disabled_ = false;
	std::unique_ptr<UnmaskWatch> unmask_watch_;
};

} // namespace weft::vfio_user
