// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/bring_up.hpp"

#include "cards/mellanox_icm/page_mappings.hpp"

namespace weft::mellanox_icm
{

using hw::mellanox_icm::Status;

Status BringUp::lend_firmware(std::span<const std::uint8_t> mailbox)
{
	if (stage_ != Stage::power_on)
		return Status::bad_system_state;
	return count_pages(mailbox, firmware_pages_);
}

void BringUp::take_firmware_back()
{
	stage_ = Stage::power_on;
	firmware_pages_ = 0;
}

Status BringUp::lend_aux(std::span<const std::uint8_t> mailbox)
{
	return count_pages(mailbox, aux_pages_);
}

Status BringUp::run()
{
	if (firmware_pages_ < needs_.firmware_pages)
		return Status::bad_system_state;
	if (stage_ == Stage::power_on)
		stage_ = Stage::running;
	return Status::ok;
}

bool BringUp::may_initialise() const
{
	return stage_ != Stage::initialised && aux_pages_ >= needs_.aux_pages;
}

void BringUp::close()
{
	if (stage_ == Stage::initialised)
		stage_ = Stage::running;
}

void BringUp::reset()
{
	take_firmware_back();
	take_aux_back();
}

} // namespace weft::mellanox_icm
