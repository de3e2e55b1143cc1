// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vfio-user/interrupts.hpp"

#include <bit>
#include <cerrno>
#include <optional>
#include <system_error>

#include "base/descriptor_kind.hpp"
#include "base/loop.hpp"

namespace weft::vfio_user
{

// The descriptor with which a client unmasks INTx without a message (KVM's resample descriptor). It
// must be an eventfd, of which one read takes the whole count. If it is still readable after
// kMostCounts reads, it is something else that would keep the loop busy forever, so it is not
// polled any more.
class Interrupts::UnmaskWatch
{
public:
	UnmaskWatch(Loop &loop, FileDescriptor fd, std::function<void()> unmask)
	    : fd_(std::move(fd)), unmask_(std::move(unmask))
	{
		try {
			watch_.emplace(loop, fd_.get(), Watch::kReadable,
				       [this](unsigned) { take(); });
		} catch (const std::system_error &) {
			// The file cannot be polled, so it never signals anything.
		}
	}

private:
	static constexpr unsigned kMostCounts = 16;

	void take()
	{
		// Reads nothing if the client has read the count first.
		unsigned counts = 0;
		while (counts < kMostCounts && take_count(fd_.get()))
			++counts;
		if (counts == kMostCounts)
			watch_->want(Watch::kNothing);
		// This must be the last call, because it may destroy this object.
		if (counts)
			unmask_();
	}

	const FileDescriptor fd_;
	const std::function<void()> unmask_;
	std::optional<Watch> watch_;
};

Interrupts::Interrupts(Loop &loop, unsigned msix_vectors, bool intx)
    : loop_(loop), msix_(msix_vectors), has_intx_(intx)
{
}

Interrupts::~Interrupts() = default;

IrqInfo Interrupts::info(std::uint32_t index) const
{
	IrqInfo info{sizeof(IrqInfo), 0, index, 0};
	if (index == kIrqIntx && has_intx_) {
		info.flags = kIrqEventfd | kIrqMaskable | kIrqAutomasked;
		info.count = 1;
	} else if (index == kIrqMsix && !msix_.empty()) {
		info.flags = kIrqEventfd;
		info.count = static_cast<std::uint32_t>(msix_.size());
	}
	return info;
}

int Interrupts::set(const IrqSet &set, std::span<const std::byte> booleans,
		    std::vector<FileDescriptor> &&fds)
{
	constexpr std::uint32_t data = kIrqSetDataNone | kIrqSetDataBool | kIrqSetDataEventfd;
	constexpr std::uint32_t action =
		kIrqSetActionMask | kIrqSetActionUnmask | kIrqSetActionTrigger;
	if (set.index >= kIrqs || set.flags & ~(data | action) ||
	    !std::has_single_bit(set.flags & data) || !std::has_single_bit(set.flags & action))
		return EINVAL;
	const std::uint32_t count = info(set.index).count;
	if (set.start > count || set.count > count - set.start)
		return EINVAL;
	if (set.flags & kIrqSetDataBool ? booleans.size() != set.count : !booleans.empty())
		return EINVAL;
	if (!(set.flags & kIrqSetActionTrigger) && !(info(set.index).flags & kIrqMaskable))
		return ENOTSUP;

	if (set.flags & kIrqSetDataEventfd)
		return set_eventfds(set, std::move(fds));
	if (!fds.empty())
		return EINVAL;
	if (set.flags & kIrqSetDataNone && set.flags & kIrqSetActionTrigger && !set.count) {
		if (set.start)
			return EINVAL;
		disable(set.index);
		return 0;
	}
	return set_levels(set, booleans);
}

int Interrupts::set_eventfds(const IrqSet &set, std::vector<FileDescriptor> &&fds)
{
	// A request without descriptors removes the descriptors of the vectors.
	if (!fds.empty() && fds.size() != set.count)
		return EINVAL;
	for (const auto &fd : fds)
		if (kind_of(fd.get()) != DescriptorKind::event)
			return EBADF;
	if (set.flags & kIrqSetActionMask)
		return ENOTSUP;
	if (set.flags & kIrqSetActionUnmask)
		return watch_unmask(std::move(fds));
	std::vector<std::optional<Notifier>> notifiers(set.count);
	try {
		for (std::size_t i = 0; i < fds.size(); ++i)
			notifiers[i] = Notifier::take(std::move(fds[i]), Notifier::Kind::event);
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	for (std::uint32_t i = 0; i < set.count; ++i) {
		if (set.index == kIrqIntx) {
			intx_event_ = std::move(notifiers[i]);
			unmask_intx();
			continue;
		}
		Vector &vector = msix_[set.start + i];
		vector.event = std::move(notifiers[i]);
		if (vector.event && std::exchange(vector.pending, false))
			vector.event->ring();
	}
	return 0;
}

int Interrupts::watch_unmask(std::vector<FileDescriptor> &&fds)
{
	unmask_watch_.reset();
	if (fds.empty())
		return 0;
	try {
		unmask_watch_ = std::make_unique<UnmaskWatch>(loop_, std::move(fds[0]),
							      [this] { unmask_intx(); });
	} catch (const std::system_error &) {
		return EINVAL; // the descriptor cannot be polled
	}
	return 0;
}

int Interrupts::set_levels(const IrqSet &set, std::span<const std::byte> booleans)
{
	for (std::uint32_t i = 0; i < set.count; ++i) {
		if (set.flags & kIrqSetDataBool && booleans[i] == std::byte{0})
			continue;
		if (set.flags & kIrqSetActionMask)
			intx_masked_ = true;
		else if (set.flags & kIrqSetActionUnmask)
			unmask_intx();
		else if (set.index == kIrqMsix)
			raise_msix(set.start + i);
		else if (intx_event_)
			intx_event_->ring();
	}
	return 0;
}

void Interrupts::disable(std::uint32_t index)
{
	if (index == kIrqMsix) {
		for (Vector &vector : msix_)
			vector = {};
	} else if (index == kIrqIntx) {
		intx_event_.reset();
		unmask_watch_.reset();
		intx_masked_ = false;
	}
}

void Interrupts::raise_msix(unsigned number)
{
	if (number >= msix_.size())
		return;
	Vector &vector = msix_[number];
	if (vector.event)
		vector.event->ring();
	else
		vector.pending = true;
}

void Interrupts::clear_pending()
{
	for (Vector &vector : msix_)
		vector.pending = false;
}

void Interrupts::set_intx(bool asserted)
{
	intx_asserted_ = asserted;
	deliver_intx();
}

void Interrupts::set_intx_disabled(bool disabled)
{
	intx_disabled_ = disabled;
	deliver_intx();
}

void Interrupts::unmask_intx()
{
	intx_masked_ = false;
	deliver_intx();
}

void Interrupts::deliver_intx()
{
	if (!intx_asserted_ || intx_masked_ || intx_disabled_ || !intx_event_)
		return;
	intx_masked_ = true;
	intx_event_->ring();
}

void Interrupts::reset()
{
	set_intx_disabled(false);
	clear_pending();
}

void Interrupts::release()
{
	disable(kIrqMsix);
	disable(kIrqIntx);
}

} // namespace weft::vfio_user
