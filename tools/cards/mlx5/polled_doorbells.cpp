// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/polled_doorbells.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <spdlog/spdlog.h>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

namespace uar = hw::mlx5::uar;

namespace
{

// The card polls without pauses for this time after the last doorbell. Afterwards a pause is a part
// of the time without doorbells, so that it delays a doorbell in proportion to this time, up to a
// limit: a card whose queues are idle polls 500 times a second.
constexpr auto kBusy = std::chrono::microseconds(100);
constexpr int kPauseFraction = 16;
constexpr auto kMostPause = std::chrono::milliseconds(2);

// If the records of all queues must be read, the pause is at least as long as the reading took, so
// that it takes half of the thread's time at most. The limit is for a thread that was preempted.
constexpr auto kMostPauseAfterScan = std::chrono::milliseconds(50);

// Limits of one pass, after which the loop does other work: pages whose registers are read, and
// queues of each kind whose records are read. Send queues have a limit of their own, so that they
// cannot keep the card from completion queues.
constexpr unsigned kPagesPerPass = 64;
constexpr unsigned kRecordsPerPass = 64;

constexpr std::uint64_t kMappedOffset = std::uint64_t{limits::kFirstPolledUar} * uar::page_size;

FileDescriptor make_file()
{
	FileDescriptor file(::memfd_create("weft-doorbells", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	// The guest must not change the size, because an access beyond the end raises SIGBUS.
	if (!file || ::ftruncate(file.get(), static_cast<off_t>(limits::kRegistersSize)) ||
	    ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		throw std::system_error(errno, std::generic_category(), "memfd_create");
	return file;
}

} // namespace

PolledDoorbells::PolledDoorbells(Core &core, bool on, PollCounts &counts)
    : core_(core), on_(on), counts_(counts), again_(core.host.loop(),
						    [this] {
							    if (polling_)
								    pass();
						    }),
      pause_(core.host.loop(), [this] { pass(); })
{
}

// If there is no memory for the file, all accesses are trapped.
PciMapping PolledDoorbells::mapping()
{
	if (!on_)
		return {};
	if (!memory_) {
		try {
			FileDescriptor file = make_file();
			auto lender = std::make_shared<MemoryLender>();
			memory_ = MemoryMapping::map_file(file.get(), 0, limits::kRegistersSize,
							  true, lender);
			file_ = std::move(file);
			lender_ = std::move(lender);
		} catch (const std::system_error &error) {
			spdlog::warn("{}: its doorbells are trapped: {}", core_.context.name,
				     error.what());
			return {};
		}
	}
	return {.fd = file_.get(),
		.offset = kMappedOffset,
		.size = limits::kRegistersSize - kMappedOffset};
}

void PolledDoorbells::drop_file()
{
	memory_.reset();
	lender_.reset();
	file_.reset();
}

void PolledDoorbells::clear(std::uint32_t page)
{
	if (has_file())
		std::memset(memory_->data() + std::size_t{page} * uar::page_size, 0,
			    uar::page_size);
}

// The number may be among those of the round that are left, which must not lose another one.
void PolledDoorbells::insert(Queues &queues, std::uint32_t number)
{
	if (queues.numbers.insert(number).second && queues.left)
		queues.left++;
}

void PolledDoorbells::add(const QueuePair &qp)
{
	if (!polls(qp.uar_page) || !qp.has_send_queue)
		return;
	insert(pages_[qp.uar_page].sends, qp.qpn);
	start();
}

void PolledDoorbells::add(const CompletionQueue &cq)
{
	if (!polls(cq.uar_page()))
		return;
	insert(pages_[cq.uar_page()].arms, cq.number());
	start();
}

void PolledDoorbells::remove(const QueuePair &qp)
{
	const auto page = pages_.find(qp.uar_page);
	if (page == pages_.end())
		return;
	page->second.sends.numbers.erase(qp.qpn);
	drop(qp.uar_page);
}

void PolledDoorbells::remove(const CompletionQueue &cq)
{
	const auto page = pages_.find(cq.uar_page());
	if (page == pages_.end())
		return;
	page->second.arms.numbers.erase(cq.number());
	drop(cq.uar_page());
}

void PolledDoorbells::drop(std::uint32_t page)
{
	if (pages_.at(page).empty())
		pages_.erase(page);
	if (pages_.empty())
		reset();
}

void PolledDoorbells::reset()
{
	pages_.clear();
	round_left_ = 0;
	unfinished_ = false;
	polling_ = false;
	pause_.cancel();
}

void PolledDoorbells::start()
{
	last_active_ = core_.host.loop().now();
	if (polling_)
		return;
	polling_ = true;
	again_.signal();
}

std::uint64_t PolledDoorbells::take(std::uint32_t page, std::uint32_t offset) const
{
	void *const place = memory_->data() + std::size_t{page} * uar::page_size + offset;
	const std::atomic_ref<std::uint64_t> value(*static_cast<std::uint64_t *>(place));
	// Most registers are 0, and a plain load leaves the cache line shared.
	if (value.load(std::memory_order_relaxed) == 0)
		return 0;
	// The records are read after this, so a doorbell that is not seen here comes after them.
	return value.exchange(0, std::memory_order_seq_cst);
}

// Reads the records of queues that are left, as far as @budget permits. Returns true if one had
// news.
template<typename Read>
bool PolledDoorbells::read_records(Queues &queues, unsigned &budget, Read &&read)
{
	bool active = false;
	queues.left = std::min(queues.left, queues.numbers.size());
	for (; queues.left && budget; --queues.left, --budget) {
		auto next = queues.numbers.lower_bound(queues.next);
		if (next == queues.numbers.end())
			next = queues.numbers.begin();
		queues.next = *next + 1;
		active |= read(*next);
	}
	return active;
}

// @rung: the register names this queue. It is then served even if its record has not changed.
bool PolledDoorbells::read_send(std::uint32_t qpn, bool rung)
{
	QueuePair *const qp = core_.context.queue_pair(qpn);
	if (!qp || !qp->accepts_send_doorbell())
		return false;
	const GuestMemory *const memory = core_.memory.memory();
	const auto posted = memory ? memory->load<std::uint32_t>(qp->record + 4) : std::nullopt;
	if (!posted || (!rung && qp->polled_sends == posted))
		return false;
	qp->polled_sends = posted;
	counts_.doorbells.fetch_add(1, std::memory_order_relaxed);
	core_.transport->send_doorbell(*qp);
	return true;
}

bool PolledDoorbells::read_arm(std::uint32_t cqn)
{
	CompletionQueue *const cq = core_.context.completion_queue(cqn);
	if (!cq || !cq->arm_by_record())
		return false;
	counts_.doorbells.fetch_add(1, std::memory_order_relaxed);
	return true;
}

// A round reads each page once. If the guest has not been given the file, it may have that of an
// earlier process, so the records of all queues are read. If a round has left records, the next one
// reads them, before all are read again.
void PolledDoorbells::start_round()
{
	scan_ = !has_file() && !unfinished_;
	if (scan_)
		scan_began_ = core_.host.loop().now();
	unfinished_ = false;
	round_left_ = pages_.size();
}

// Returns true if the page had a doorbell.
bool PolledDoorbells::look_at(std::uint32_t number, Page &page)
{
	if (scan_) {
		page.sends.left = page.sends.numbers.size();
		page.arms.left = page.arms.numbers.size();
	}
	if (!has_file())
		return false;
	bool rung = false;
	for (std::uint32_t place = uar::blue_flame; place < uar::page_size;
	     place += uar::blue_flame_half) {
		const std::uint64_t value = take(number, place);
		if (value == 0)
			continue;
		rung = true;
		page.sends.left = page.sends.numbers.size();
		// The queue that the register names is served first.
		const std::uint32_t qpn = uar::send_qpn.of(
			__builtin_bswap32(static_cast<std::uint32_t>(value >> 32)));
		if (page.sends.numbers.contains(qpn))
			read_send(qpn, true);
	}
	if (take(number, uar::cq_doorbell)) {
		rung = true;
		page.arms.left = page.arms.numbers.size();
	}
	return rung;
}

// Reads registers and records. Returns true if there was a doorbell. @more: the pass has used its
// budget before it has read all.
bool PolledDoorbells::read(bool &more)
{
	// A card that has failed has no queues that could be served, until it is reset.
	if (core_.stage != Stage::initialised || !core_.health.well())
		return false;
	bool active = false;
	unsigned sends = kRecordsPerPass, arms = kRecordsPerPass;
	if (!round_left_)
		start_round();
	round_left_ = std::min(round_left_, pages_.size());
	for (unsigned visits = kPagesPerPass; round_left_ && visits && sends && arms;
	     --round_left_, --visits) {
		auto found = pages_.lower_bound(next_page_);
		if (found == pages_.end())
			found = pages_.begin();
		Page &page = found->second;
		next_page_ = found->first + 1;
		active |= look_at(found->first, page);
		active |= read_records(page.sends, sends,
				       [this](std::uint32_t qpn) { return read_send(qpn, false); });
		active |= read_records(page.arms, arms,
				       [this](std::uint32_t cqn) { return read_arm(cqn); });
		unfinished_ |= page.sends.left || page.arms.left;
	}
	more = round_left_ || unfinished_;
	return active;
}

void PolledDoorbells::pass()
{
	counts_.polls.fetch_add(1, std::memory_order_relaxed);
	bool more = false;
	const bool active = read(more);
	const auto now = core_.host.loop().now();
	if (active)
		last_active_ = now;
	const auto idle = now - last_active_;
	if (more || idle < kBusy) {
		// The guest may need the processor to post the next request.
		if (!active && !more)
			std::this_thread::yield();
		again_.signal();
	} else {
		Clock::duration pause =
			std::min<Clock::duration>(idle / kPauseFraction, kMostPause);
		if (!has_file())
			pause = std::max(pause, std::min<Clock::duration>(now - scan_began_,
									  kMostPauseAfterScan));
		pause_.arm(pause);
	}
}

} // namespace weft::mlx5
