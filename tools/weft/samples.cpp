// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/samples.hpp"

#include <stdexcept>
#include <utility>

namespace weft::cli
{

using nlohmann::json;

json Samples::request() const
{
	const auto generation = now_.find("generation");
	return generation == now_.end() ? json::object() : json{{"since", *generation}};
}

bool Samples::add(json result)
{
	if (!result.contains("since")) {
		before_ = now_.is_null() ? result : std::move(now_);
		now_ = std::move(result);
		different_.clear();
		for (const auto &[port, values] : now_.at("ports").items())
			different_.push_back(port);
		return true;
	}
	if (now_.is_null() || result.at("since") != now_.at("generation"))
		throw std::runtime_error("weftd has sent the changes of another sample");
	auto &ports = now_.at("ports");
	for (const auto &[port, values] : result.at("ports").items())
		if (!ports.contains(port))
			throw std::runtime_error("weftd has sent changes of an unknown port");

	before_["time"] = now_.at("time");
	before_["columns"] = now_.at("columns");
	auto &ports_before = before_["ports"];
	// After a complete sample, the one before may have had other ports.
	if (different_.size() == ports.size())
		ports_before = ports;
	else
		for (const auto &port : different_)
			ports_before[port] = ports.at(port);
	different_.clear();
	for (const auto &[port, values] : result.at("ports").items()) {
		ports.at(port) = values;
		different_.push_back(port);
	}
	result.erase("since");
	result.erase("ports");
	// Of the Ethernets, too, only what has changed was sent.
	if (const auto ethernet = result.find("ethernet"); ethernet != result.end()) {
		now_["ethernet"].update(*ethernet, true);
		result.erase(ethernet);
	}
	now_.update(result);
	return false;
}

} // namespace weft::cli
