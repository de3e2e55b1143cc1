// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/mad_client.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace weft::sm
{

namespace
{
/* A flood is cut off here: MADs are unreliable, and honest senders repeat. */
constexpr std::size_t inbox_max = 8192;
} // namespace

MadClient::MadClient(Loop &loop, fabric::Port &port, const Config &config,
		     std::function<void(fabric::AddressedMad &&)> other,
		     std::function<void()> arrived)
    : loop_(loop), config_(config), other_(std::move(other)),
      arrived_(std::in_place, loop, std::move(arrived)),
      /* Late answers to an earlier manager on this port must not match, nor guessed ones. */
      tid_(loop.random()),
      mads_(std::in_place, port,
	    fabric::MadPort::Config{.description = config.name,
				    .node_guid = config.guid,
				    .is_sm = true,
				    .environment = &loop.environment()},
	    fabric::MadPort::Handlers{.received =
					      [this](fabric::AddressedMad &&mad) {
						      {
							      std::lock_guard lock(mutex_);
							      if (inbox_.size() < inbox_max)
								      inbox_.push_back(
									      std::move(mad));
						      }
						      arrived_->signal();
					      },
				      .port_changed = [this] { wake(); }})
{
}

void MadClient::close()
{
	/* Nothing arrives any more; then nobody is told. */
	mads_.reset();
	arrived_.reset();
}

void MadClient::stop()
{
	stopped_.store(true, std::memory_order_release);
	wake();
}

bool MadClient::take_arrived()
{
	/* A handler of another MAD may come here again. */
	std::vector<fabric::AddressedMad> arrived = std::exchange(taken_, {});
	{
		std::lock_guard lock(mutex_);
		arrived.swap(inbox_);
	}
	for (fabric::AddressedMad &mad : arrived)
		if (!take_answer(mad))
			other_(std::move(mad));
	const bool any = !arrived.empty();
	arrived.clear();
	taken_ = std::move(arrived);
	return any;
}

void MadClient::perform(SmpRequest &request)
{
	std::vector<SmpRequest> batch{std::move(request)};
	perform(batch);
	request = std::move(batch.front());
}

void MadClient::perform(std::vector<SmpRequest> &batch)
{
	auto next = batch.begin();
	requests_ += batch.size();
	while (!stopped() && (next != batch.end() || !pending_.empty())) {
		const Clock::time_point due = now() + config_.smp_timeout;
		while (next != batch.end() && pending_.size() < config_.smp_window) {
			pending_.push_back({next_tid(), &*next, config_.smp_retries, due});
			transmit(pending_.back());
			++next;
		}
		/* Most answers are there before the request's transmission ends. */
		if (!take_arrived())
			wait_for_answer();
		if (!pending_.empty())
			expire();
	}
	pending_.clear();
}

void MadClient::wait_for_answer()
{
	auto soonest = Clock::time_point::max();
	for (const Pending &pending : pending_)
		soonest = std::min(soonest, pending.due);
	loop_.reactor().turn(soonest);
}

void MadClient::expire()
{
	const Clock::time_point now = this->now();
	for (auto it = pending_.begin(); it != pending_.end();) {
		Pending &pending = *it;
		if (pending.due > now) {
			++it;
		} else if (pending.tries_left == 0) {
			spdlog::warn("sm: no answer to {} of attribute {:#06x} by route [{}]",
				     pending.request->method == ib::MadMethod::set ? "Set" : "Get",
				     pending.request->attribute,
				     fmt::join(pending.request->path, ","));
			timeouts_++;
			it = pending_.erase(it);
		} else {
			pending.tries_left--;
			pending.due = now + config_.smp_timeout;
			transmit(pending);
			++it;
		}
	}
}

void MadClient::transmit(const Pending &pending)
{
	const SmpRequest &request = *pending.request;
	ib::Smp smp{};
	smp.header.base_version = ib::mad_base_version;
	smp.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
	smp.header.class_version = 1;
	smp.header.method = static_cast<std::uint8_t>(request.method);
	smp.header.hop_cnt = static_cast<std::uint8_t>(request.path.size());
	smp.header.tid = pending.tid;
	smp.header.attr_id = request.attribute;
	smp.header.attr_mod = request.modifier;
	smp.mkey = request.mkey;
	smp.dr_slid = ib::lid_permissive;
	smp.dr_dlid = ib::lid_permissive;
	std::copy(request.path.begin(), request.path.end(), smp.initial_path + 1);
	std::memcpy(smp.data, request.data, sizeof(smp.data));
	mads_->send_directed(smp);
}

bool MadClient::take_answer(const fabric::AddressedMad &mad)
{
	const auto &smp = reinterpret_cast<const ib::Smp &>(mad.mad);
	if (!smp.header.is_smp() || !smp.header.is_method(ib::MadMethod::get_resp))
		return false;
	const auto found = std::ranges::find(pending_, smp.header.tid.value(), &Pending::tid);
	/* An answer that nobody waits for any more. */
	if (found == pending_.end())
		return true;
	SmpRequest &request = *found->request;
	if (smp.header.attr_id != request.attribute || smp.header.attr_mod != request.modifier) {
		spdlog::warn("sm: answer to another question by route [{}]",
			     fmt::join(request.path, ","));
		return true;
	}
	request.answered = true;
	request.status = static_cast<std::uint16_t>(smp.header.status & ~ib::mad_status_direction);
	std::memcpy(request.data, smp.data, sizeof(request.data));
	/* Whoever waits longest stays in front. */
	pending_.erase(found);
	return true;
}

} // namespace weft::sm
