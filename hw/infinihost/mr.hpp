// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory keys. The card has no fast registration and no windows: a kernel's regions are all of memory, by DMA addresses.
#pragma once
#include <rdma/driver.hpp>
#include "family.hpp"

namespace infinihost {

class Hca;

/* A memory key's entry in the card's protection table, from SW2HW_MPT to HW2SW_MPT. */
class ProtectionEntry {
public:
	ProtectionEntry() = default;
	ProtectionEntry(ProtectionEntry &&other) noexcept
	    : commands_(std::exchange(other.commands_, nullptr)), number_(std::move(other.number_)), hold_(std::move(other.hold_))
	{
	}
	ProtectionEntry &operator=(ProtectionEntry &&other) noexcept
	{
		std::swap(commands_, other.commands_);
		number_ = std::move(other.number_);
		hold_ = std::move(other.hold_);
		return *this;
	}
	~ProtectionEntry();

	/* All of memory, for a domain; access: as the verbs have it. May sleep. Errors: ENOSPC, ENOMEM, those of commands. */
	static kern::Result<ProtectionEntry> create(Hca &hca, u32 pd, int access);
	u32 key() const { return number_.value() << 8; }

private:
	CommandInterface *commands_ = nullptr; // while the card has it
	Number number_;
	IcmHold hold_;
};

class Mr {
public:
	using Object = rdma::DriverObject<ib_mr, Mr>;
	static Mr &of(ib_mr *mr) { return Object::state(mr); }

	Mr(Hca &hca, ib_mr &verbs) : verbs_(verbs), hca_(hca) {}
	kern::Result<> start_dma(int access);

private:
	ib_mr &verbs_;
	Hca &hca_;
	ProtectionEntry entry_;
};

} // namespace infinihost
