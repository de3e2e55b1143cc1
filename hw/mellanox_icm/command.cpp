// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "command.hpp"
#include <kern/log.hpp>
#include <kern/time.hpp>

namespace mellanox_icm
{

namespace
{

namespace hcr = hw::mellanox_icm::hcr;

// Value of the register after the card has been removed.
constexpr u32 gone = 0xffffffff;

/* Documentation/connectx.rst, "Status codes". */
int errno_of(u8 status)
{
	switch (static_cast<hw::mellanox_icm::Status>(status)) {
	case hw::mellanox_icm::Status::ok:
		return 0;
	case hw::mellanox_icm::Status::internal_error:
		return -EIO;
	case hw::mellanox_icm::Status::bad_opcode:
		return -EOPNOTSUPP;
	case hw::mellanox_icm::Status::bad_parameter:
	case hw::mellanox_icm::Status::bad_qp_state:
	case hw::mellanox_icm::Status::bad_packet:
		return -EINVAL;
	case hw::mellanox_icm::Status::bad_system_state:
		return -ENXIO;
	case hw::mellanox_icm::Status::bad_resource:
	case hw::mellanox_icm::Status::bad_resource_state:
	case hw::mellanox_icm::Status::bad_index:
		return -EBADF;
	case hw::mellanox_icm::Status::resource_busy:
	case hw::mellanox_icm::Status::region_bound:
		return -EBUSY;
	case hw::mellanox_icm::Status::exceeds_limit:
	case hw::mellanox_icm::Status::bad_size:
		return -ENOMEM;
	case hw::mellanox_icm::Status::bad_nvmem:
	case hw::mellanox_icm::Status::bad_segment:
		return -EFAULT;
	case hw::mellanox_icm::Status::icm_error:
		return -ENOMEM;
	case hw::mellanox_icm::Status::no_local_memory:
		return -EAGAIN;
	}
	return -EIO;
}

} // namespace

CommandInterface::CommandInterface(const kern::Mmio &bar0, struct device *device, GoBit go_bit,
				   FailureListener &listener)
    : bar0_(bar0), device_(device), go_bit_(go_bit), listener_(listener), pool_(device),
      post_lock_(KERN_LOCK_CLASS("mellanox.hcr")), slots_lock_(KERN_LOCK_CLASS("mlx4.commands")),
      slot_freed_(KERN_LOCK_CLASS("mellanox.command_freed"))
{
}

kern::Result<kern::Owned<CommandInterface>> CommandInterface::create(const kern::Mmio &bar0,
								     struct device *device,
								     GoBit go_bit,
								     FailureListener &listener)
{
	auto commands = KERN_TRY(kern::adopt(
		new (kern::Gfp::kernel) CommandInterface(bar0, device, go_bit, listener)));
	auto slots = KERN_TRY(kern::make_array<Slot>(kern::Gfp::kernel, max_slots));
	{
		kern::Guard guard(commands->slots_lock_);
		commands->slots_ = std::move(slots);
	}
	return commands;
}

void CommandInterface::fail()
{
	if (attention_.fetch_or(has_failed) & has_failed)
		return;
	// Wake all callers that wait for a completion, so that they do not wait for the timeout.
	kern::Guard guard(slots_lock_);
	for (Slot &slot : slots_)
		if (slot.pending)
			slot.done.complete_all();
	slot_freed_.wake_all();
}

void CommandInterface::watch(bool watched)
{
	if (watched)
		attention_.fetch_or(is_watched);
	else
		attention_.fetch_and(static_cast<u8>(~is_watched));
}

kern::Error CommandInterface::give_up(const Command &command, const char *why)
{
	if (!failed())
		kern_dev_error(device_, "command %#x: %s\n", static_cast<u32>(command.opcode), why);
	// card_failed() must be called first. When failed() is true, commands that end the card's
	// use of memory return immediately, and their callers free the memory.
	listener_.card_failed(why);
	fail();
	return kern::Error{-EIO};
}

/*
 * Waits until the card has read the register; returns its value. The card has not read the last
 * command as long as GO is set or the toggle bit (on cards that have one) differs from the last
 * command's. A polled command completes in the same way.
 */
kern::Result<u32> CommandInterface::wait_idle()
{
	const u32 last_toggle = next_toggle_ ^ 1;
	const auto deadline = kern::Deadline::in_ms(timeout_ms);
	for (unsigned int round = 0;; round++) {
		const u32 control = bar0_.read_be32(hcr::at + hcr::control);
		if (control == gone)
			return kern::Error{-ENODEV};
		if (!hcr::go.of(control) &&
		    (go_bit_ == GoBit::go || hcr::toggle.of(control) == last_toggle))
			return control;
		if (failed())
			return kern::Error{-EIO};
		if (deadline.passed())
			return kern::Error{-ETIMEDOUT};
		// Most commands complete immediately. Sleep if the card takes longer.
		if (round >= 8)
			kern::sleep_us(20, 100);
	}
}

kern::Result<> CommandInterface::post(const Command &command, u16 token, bool event)
{
	if (!std::exchange(known_idle_, false))
		KERN_TRY(wait_idle());
	const auto write = [this](size_t offset, u32 value) {
		bar0_.write_be32(hcr::at + offset, value);
	};
	write(hcr::in_param, static_cast<u32>(command.in_param >> 32));
	write(hcr::in_param + 4, static_cast<u32>(command.in_param));
	write(hcr::in_modifier, command.in_modifier);
	write(hcr::out_param, static_cast<u32>(command.out_param >> 32));
	write(hcr::out_param + 4, static_cast<u32>(command.out_param));
	write(hcr::token.offset, hcr::token.in(token));
	// The write of the last register starts the command. All memory writes must precede it.
	kern::wmb();
	const u32 toggle = go_bit_ == GoBit::go_and_toggle ? hcr::toggle.in(next_toggle_) : 0;
	write(hcr::control, hcr::go.mask() | hcr::event.in(event) | toggle |
				    hcr::op_modifier.in(command.op_modifier) |
				    hcr::opcode.in(static_cast<u32>(command.opcode)));
	next_toggle_ ^= 1;
	count_.add_relaxed(1);
	return {};
}

kern::Result<> CommandInterface::check_status(const Command &command, u8 status)
{
	const int error = errno_of(status);
	if (!error)
		return {};
	kern_dev_debug(device_, "command %#x refused: status %#x\n",
		       static_cast<u32>(command.opcode), status);
	return kern::Error{error};
}

kern::Result<u64> CommandInterface::execute(const Command &command)
{
	KERN_MIGHT_SLEEP();
	if (failed())
		return kern::Error{-EIO};
	bool events = command.answer == Answer::event;
	if (events) {
		kern::Guard guard(slots_lock_);
		events = events_;
	}
	return events ? execute_with_event(command) : execute_polling(command);
}

kern::Result<u64> CommandInterface::execute_polling(const Command &command)
{
	kern::Guard guard(post_lock_);
	if (const auto posted = post(command, polling_token, false); !posted)
		return give_up(command, "the command register stays busy");
	const auto answered = wait_idle();
	if (!answered)
		return give_up(command,
			       answered.error() == -ENODEV ? "the card is gone" : "no answer");
	known_idle_ = true;
	KERN_TRY(check_status(command, static_cast<u8>(hcr::status.of(answered.value()))));
	if (!command.immediate)
		return u64{0};
	const u64 high = bar0_.read_be32(hcr::at + hcr::out_param);
	const u64 low = bar0_.read_be32(hcr::at + hcr::out_param + 4);
	return high << 32 | low;
}

int CommandInterface::take_slot()
{
	kern::Guard guard(slots_lock_);
	if (failed() || !events_)
		return -EIO;
	if (!free_slots_)
		return -EAGAIN;
	const int index = __builtin_ctzll(free_slots_);
	free_slots_ &= free_slots_ - 1;
	in_use_++;
	Slot &slot = slots_[index];
	slot.done.reinit();
	// The slot's token changes with each command, so a late response to an earlier command is
	// not mistaken for this one's.
	slot.token = static_cast<u16>(slot.token + max_slots) | static_cast<u16>(index);
	slot.pending = true;
	return index;
}

void CommandInterface::return_slot(unsigned int index)
{
	{
		kern::Guard guard(slots_lock_);
		slots_[index].pending = false;
		free_slots_ |= u64{1} << index;
		in_use_--;
	}
	slot_freed_.wake_all();
}

kern::Result<u64> CommandInterface::execute_with_event(const Command &command)
{
	int index;
	slot_freed_.wait([&] {
		index = take_slot();
		return index != -EAGAIN;
	});
	if (index < 0)
		return kern::Error{index};
	Slot *slot;
	u16 token;
	{
		kern::Guard guard(slots_lock_);
		slot = &slots_[index];
		token = slot->token;
	}
	int posted;
	{
		kern::Guard guard(post_lock_);
		posted = post(command, token, true).error();
	}
	if (posted) {
		return_slot(index);
		return give_up(command, posted == -ENODEV ? "the card is gone"
							  : "the command register stays busy");
	}
	const bool in_time = slot->done.wait_for(timeout_ms);
	u8 status;
	u64 out_param;
	bool answered;
	{
		kern::Guard guard(slots_lock_);
		answered = !slot->pending;
		status = slot->status;
		out_param = slot->out_param;
	}
	return_slot(index);
	if (!answered)
		return give_up(command, in_time ? "the card has failed" : "no answer");
	KERN_TRY(check_status(command, status));
	return out_param;
}

void CommandInterface::completed(u16 token, u8 status, u64 out_param)
{
	{
		kern::Guard guard(slots_lock_);
		Slot &slot = slots_[token % max_slots];
		if (slot.pending && slot.token == token) {
			slot.status = status;
			slot.out_param = out_param;
			slot.pending = false;
			slot.done.complete();
			return;
		}
	}
	kern_dev_warning_limited(device_, "response to no pending command, token %#x\n", token);
}

kern::Result<> CommandInterface::use_events(unsigned int log_max_commands)
{
	const unsigned int count = log_max_commands >= 6 ? max_slots : 1u << log_max_commands;
	{
		kern::Guard guard(slots_lock_);
		free_slots_ = count == 64 ? ~u64{0} : (u64{1} << count) - 1;
		events_ = true;
	}
	return {};
}

void CommandInterface::use_polling()
{
	slot_freed_.wait([this] {
		kern::Guard guard(slots_lock_);
		events_ = in_use_ ? events_ : false;
		return in_use_ == 0;
	});
}

kern::Result<> CommandInterface::execute_in(Command command, Mailbox &in)
{
	command.immediate = false;
	command.in_param = in.bus_address();
	const auto result = execute(command);
	if (result)
		return {};
	if (failed())
		in.abandon();
	return kern::Error{result.error()};
}

kern::Result<u64> CommandInterface::execute_in_immediate(Command command, Mailbox &in)
{
	command.in_param = in.bus_address();
	const auto result = execute(command);
	if (!result && failed())
		in.abandon();
	return result;
}

kern::Result<> CommandInterface::execute_out(Command command, Mailbox &out)
{
	command.immediate = false;
	command.out_param = out.bus_address();
	const auto result = execute(command);
	if (result)
		return {};
	if (failed())
		out.abandon();
	return kern::Error{result.error()};
}

kern::Result<> CommandInterface::execute_in_out(Command command, Mailbox &in, Mailbox &out)
{
	command.immediate = false;
	command.in_param = in.bus_address();
	command.out_param = out.bus_address();
	const auto result = execute(command);
	if (result)
		return {};
	if (failed()) {
		in.abandon();
		out.abandon();
	}
	return kern::Error{result.error()};
}

kern::Result<> CommandInterface::execute_closing(const Command &command, int allowed)
{
	const auto result = execute(command);
	if (result)
		return {};
	if (result.error() == allowed)
		return kern::Error{allowed};
	if (!failed())
		return give_up(command, "the card does not release memory");
	return kern::Error{result.error()};
}

} // namespace mellanox_icm
