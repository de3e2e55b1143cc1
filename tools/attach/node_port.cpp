// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attach/node_port.hpp"

#include <algorithm>
#include <utility>

#include "attach/opened_port.hpp"

namespace weft::attach
{

namespace
{

// Returns the claim that matches a MAD, or null if there is none.
const Claim *find_claim(const std::vector<const Claim *> &claims, const fabric::AddressedMad &mad)
{
	const bool smp = mad.mad.header.is_smp();
	// An SMP that was sent to the node itself has no QP in its address.
	const std::uint32_t qpn = smp ? std::uint32_t{ib::qpn_smi} : mad.address.dest_qp;
	if (mad.mad.header.is_response()) {
		const auto hi_tid = static_cast<std::uint32_t>(mad.mad.header.tid.value() >> 32);
		for (const Claim *claim : claims)
			if (claim->hi_tid == hi_tid && claim->qpn == qpn)
				return claim;
		return nullptr;
	}
	// First look for an agent of exactly this class. SMPs of the other class are delivered only
	// if there is none.
	for (const bool either_smp : {false, true})
		for (const Claim *claim : claims)
			if (claim->wants(mad.mad, qpn, either_smp))
				return claim;
	return nullptr;
}

} // namespace

class NodePort::Receiver final : public fabric::LocalReceiver
{
public:
	explicit Receiver(NodePort &owner) : owner_(&owner) {}

	bool receive(const fabric::AddressedMad &mad) override
	{
		const MutexLock lock(mutex_);
		std::vector<const Claim *> &claims = pointers_;
		if (!owner_ || !find_claim(claims, mad))
			return false;
		if (incoming_.size() < kMostIncoming) {
			incoming_.push_back(mad);
			owner_->incoming_.signal();
		}
		return true;
	}

	void port_changed() override
	{
		const MutexLock lock(mutex_);
		changed_ = true;
		if (owner_)
			owner_->incoming_.signal();
	}

	void described(fabric::PortView &&view)
	{
		const MutexLock lock(mutex_);
		view_ = std::move(view);
		if (owner_)
			owner_->incoming_.signal();
	}

	void close()
	{
		const MutexLock lock(mutex_);
		owner_ = nullptr;
	}

	void set_claims(const std::vector<Claimed> &claimed)
	{
		const MutexLock lock(mutex_);
		claims_.clear();
		pointers_.clear();
		for (const Claimed &each : claimed)
			claims_.push_back(each.claim);
		for (const Claim &claim : claims_)
			pointers_.push_back(&claim);
	}

	struct News {
		std::vector<fabric::AddressedMad> mads;
		std::optional<fabric::PortView> view;
		bool changed;
	};
	News take()
	{
		const MutexLock lock(mutex_);
		return {std::exchange(incoming_, {}), std::exchange(view_, std::nullopt),
			std::exchange(changed_, false)};
	}

private:
	Mutex mutex_;
	NodePort *owner_ WEFT_GUARDED_BY(mutex_);
	std::vector<Claim> claims_ WEFT_GUARDED_BY(mutex_);
	std::vector<const Claim *> pointers_ WEFT_GUARDED_BY(mutex_);
	std::vector<fabric::AddressedMad> incoming_ WEFT_GUARDED_BY(mutex_);
	std::optional<fabric::PortView> view_ WEFT_GUARDED_BY(mutex_);
	bool changed_ WEFT_GUARDED_BY(mutex_) = false;
};

NodePort::NodePort(Loop &loop, fabric::LocalAccess &access, bool trusted)
    : loop_(loop), access_(access), trusted_(trusted),
      last_hi_tid_(static_cast<std::uint32_t>(loop.random())),
      receiver_(std::make_shared<Receiver>(*this)), incoming_(loop, [this] { take_incoming(); })
{
	access_.set_receiver(receiver_);
}

NodePort::~NodePort()
{
	access_.set_receiver(nullptr);
	receiver_->close();
}

void NodePort::with_view(std::function<void(const fabric::PortView &)> known)
{
	waiting_.push_back(std::move(known));
	access_.describe([receiver = receiver_](fabric::PortView &&view) {
		receiver->described(std::move(view));
	});
}

bool NodePort::add_claim(Claim &claim, OpenedPort &owner)
{
	const auto overlaps = [&](const Claimed &each) { return each.claim.overlaps(claim); };
	if (std::ranges::any_of(claimed_, overlaps))
		return false;
	const auto taken = [&](const Claimed &each) { return each.claim.hi_tid == last_hi_tid_; };
	do
		++last_hi_tid_;
	while (last_hi_tid_ == 0 || std::ranges::any_of(claimed_, taken));
	claim.hi_tid = last_hi_tid_;
	claimed_.push_back({claim, &owner});
	receiver_->set_claims(claimed_);
	return true;
}

void NodePort::remove_claim(std::uint32_t hi_tid)
{
	std::erase_if(claimed_, [&](const Claimed &each) { return each.claim.hi_tid == hi_tid; });
	receiver_->set_claims(claimed_);
}

void NodePort::take_incoming()
{
	Receiver::News news = receiver_->take();
	if (news.view) {
		view_ = std::move(news.view);
		for (const auto &known : std::exchange(waiting_, {}))
			known(*view_);
	}
	if (news.changed)
		access_.describe([receiver = receiver_](fabric::PortView &&view) {
			receiver->described(std::move(view));
		});
	// Handlers of agents do not add or remove claims.
	std::vector<const Claim *> claims;
	for (const Claimed &each : claimed_)
		claims.push_back(&each.claim);
	for (const fabric::AddressedMad &mad : news.mads)
		if (const Claim *claim = find_claim(claims, mad))
			std::ranges::find(claimed_, claim->hi_tid, [](const Claimed &each) {
				return each.claim.hi_tid;
			})->owner->receive(claim->hi_tid, mad);
}

} // namespace weft::attach
