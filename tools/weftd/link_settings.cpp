// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/link_settings.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace weft::weftd
{

namespace
{

using fabric::LinkConfig;
using std::string;
using std::string_view;

template<typename T>
struct Choice {
	string_view text;
	T value;
};

constexpr Choice<std::uint8_t> kWidths[] = {
	{"1x", ib::width_1x}, {"4x", ib::width_4x}, {"8x", ib::width_8x}, {"12x", ib::width_12x}};

struct Speed {
	std::uint8_t speed;
	std::uint8_t ext;
	bool operator==(const Speed &) const = default;
};
// If a port has an extended speed, the field of the other speeds, which cannot express it, contains
// QDR (IBA 14.2.5.6).
constexpr Choice<Speed> kSpeeds[] = {{"SDR", {ib::speed_sdr, ib::speed_ext_none}},
				     {"DDR", {ib::speed_ddr, ib::speed_ext_none}},
				     {"QDR", {ib::speed_qdr, ib::speed_ext_none}},
				     {"FDR", {ib::speed_qdr, ib::speed_fdr}},
				     {"EDR", {ib::speed_qdr, ib::speed_edr}}};

constexpr Choice<ib::Mtu> kMtus[] = {{"256", ib::Mtu::mtu_256},
				     {"512", ib::Mtu::mtu_512},
				     {"1024", ib::Mtu::mtu_1024},
				     {"2048", ib::Mtu::mtu_2048},
				     {"4096", ib::Mtu::mtu_4096}};

constexpr Choice<bool> kStates[] = {
	{"up", true}, {"down", false}, {"true", true}, {"false", false}};

bool same_word(string_view a, string_view b)
{
	return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
		return std::tolower(x) == std::tolower(y);
	});
}

template<typename T, std::size_t N>
T choose(const Choice<T> (&choices)[N], string_view text)
{
	string all;
	for (const auto &choice : choices) {
		if (same_word(choice.text, text))
			return choice.value;
		all += all.empty() ? "" : ", ";
		all += choice.text;
	}
	throw std::invalid_argument(fmt::format("'{}' is not one of {}", text, all));
}

template<typename T, std::size_t N>
string name_of(const Choice<T> (&choices)[N], const T &value)
{
	for (const auto &choice : choices)
		if (choice.value == value)
			return string(choice.text);
	return "?";
}

// Returns a number and the text that follows it.
std::pair<double, string_view> number(string_view text)
{
	double value = 0;
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
	if (error != std::errc() || !std::isfinite(value))
		throw std::invalid_argument(fmt::format("'{}' is not a number", text));
	return {value, text.substr(static_cast<std::size_t>(end - text.data()))};
}

double probability(string_view text)
{
	auto [value, rest] = number(text);
	if (rest == "%") {
		value /= 100;
		rest = {};
	}
	if (!rest.empty() || value < 0 || value > 1)
		throw std::invalid_argument(
			fmt::format("'{}' is not a probability (0 to 1, or 0% to 100%)", text));
	return value;
}

std::chrono::nanoseconds duration(string_view text)
{
	constexpr Choice<double> units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	constexpr double longest = 60e9;
	const auto [value, unit] = number(text);
	if (value == 0 && unit.empty())
		return {};
	for (const auto &choice : units)
		if (choice.text == unit && value >= 0 && value * choice.value <= longest)
			return std::chrono::nanoseconds(std::llround(value * choice.value));
	throw std::invalid_argument(fmt::format(
		"'{}' is not a duration of at most a minute (as in 20us, 1.5ms)", text));
}

string duration_text(std::chrono::nanoseconds value)
{
	const auto count = value.count();
	if (count % 1000000 == 0)
		return fmt::format("{}ms", count / 1000000);
	if (count % 1000 == 0)
		return fmt::format("{}us", count / 1000);
	return fmt::format("{}ns", count);
}

struct Setting {
	string_view name;
	void (*apply)(LinkConfig &, string_view);
	string (*show)(const LinkConfig &);
};

constexpr Setting kSettings[] = {
	{"state", [](LinkConfig &c, string_view v) { c.up = choose(kStates, v); },
	 [](const LinkConfig &c) { return name_of(kStates, c.up); }},
	{"width", [](LinkConfig &c, string_view v) { c.rate.width = choose(kWidths, v); },
	 [](const LinkConfig &c) { return name_of(kWidths, c.rate.width); }},
	{"speed",
	 [](LinkConfig &c, string_view v) {
		 const Speed speed = choose(kSpeeds, v);
		 c.rate.speed = speed.speed;
		 c.rate.speed_ext = speed.ext;
	 },
	 [](const LinkConfig &c) {
		 return name_of(kSpeeds, Speed{c.rate.speed, c.rate.speed_ext});
	 }},
	{"mtu", [](LinkConfig &c, string_view v) { c.mtu = choose(kMtus, v); },
	 [](const LinkConfig &c) { return name_of(kMtus, c.mtu); }},
	{"training", [](LinkConfig &c, string_view v) { c.training = duration(v); },
	 [](const LinkConfig &c) { return duration_text(c.training); }},
	{"delay", [](LinkConfig &c, string_view v) { c.faults.delay = duration(v); },
	 [](const LinkConfig &c) { return duration_text(c.faults.delay); }},
	{"jitter", [](LinkConfig &c, string_view v) { c.faults.jitter = duration(v); },
	 [](const LinkConfig &c) { return duration_text(c.faults.jitter); }},
	{"loss", [](LinkConfig &c, string_view v) { c.faults.loss = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.loss); }},
	{"duplication", [](LinkConfig &c, string_view v) { c.faults.duplication = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.duplication); }},
	{"reordering", [](LinkConfig &c, string_view v) { c.faults.reordering = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.reordering); }},
	{"corruption", [](LinkConfig &c, string_view v) { c.faults.corruption = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.corruption); }},
	{"silent_corruption",
	 [](LinkConfig &c, string_view v) { c.faults.silent_corruption = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.silent_corruption); }},
	{"cm_loss", [](LinkConfig &c, string_view v) { c.faults.cm_loss = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.cm_loss); }},
	{"cm_duplication",
	 [](LinkConfig &c, string_view v) { c.faults.cm_duplication = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.cm_duplication); }},
	{"cm_corruption",
	 [](LinkConfig &c, string_view v) { c.faults.cm_corruption = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.cm_corruption); }},
	{"cm_lateness", [](LinkConfig &c, string_view v) { c.faults.cm_lateness = probability(v); },
	 [](const LinkConfig &c) { return fmt::format("{}", c.faults.cm_lateness); }},
	{"cm_delay", [](LinkConfig &c, string_view v) { c.faults.cm_delay = duration(v); },
	 [](const LinkConfig &c) { return duration_text(c.faults.cm_delay); }},
};

// Returns true for settings that only InfiniBand links have.
bool is_of_infiniband(string_view name)
{
	return name == "width" || name == "speed" || name == "mtu" || name == "training" ||
	       name.starts_with("cm_");
}

LinkConfig config_of(const ethernet::LinkSettings &settings)
{
	LinkConfig config;
	config.up = settings.up;
	config.faults = settings.faults;
	return config;
}

const Setting &find_setting(string_view name)
{
	const auto found = std::ranges::find(kSettings, name, &Setting::name);
	if (found == std::end(kSettings))
		throw std::invalid_argument(fmt::format("a link has no '{}'; it has {}", name,
							fmt::join(link_setting_names(), ", ")));
	return *found;
}

} // namespace

LinkConfig config_of(const fabric::Link &link)
{
	return {link.rate(), link.mtu(), link.plugged(), link.faults(), link.training()};
}

void change_link(fabric::Link &link, const LinkConfig &wanted)
{
	const auto before = config_of(link);
	link.set_faults(wanted.faults);
	link.set_training(wanted.training);
	if (wanted.rate != before.rate || wanted.mtu != before.mtu)
		link.set_rate(wanted.rate, wanted.mtu);
	if (wanted.up != before.up)
		link.set_plugged(wanted.up);
}

const std::vector<string_view> &link_setting_names()
{
	static const auto kNames = [] {
		std::vector<string_view> all;
		for (const Setting &setting : kSettings)
			all.push_back(setting.name);
		return all;
	}();
	return kNames;
}

void apply_link_setting(LinkConfig &config, string_view name, string_view value)
{
	const Setting &setting = find_setting(name);
	try {
		setting.apply(config, value);
	} catch (const std::invalid_argument &reason) {
		throw std::invalid_argument(fmt::format("{}: {}", name, reason.what()));
	}
}

string link_setting(const LinkConfig &config, string_view name)
{
	return find_setting(name).show(config);
}

const std::vector<string_view> &ethernet_setting_names()
{
	static const auto kNames = [] {
		std::vector<string_view> all = link_setting_names();
		std::erase_if(all, is_of_infiniband);
		return all;
	}();
	return kNames;
}

void apply_ethernet_setting(ethernet::LinkSettings &settings, string_view name, string_view value)
{
	if (std::ranges::find(ethernet_setting_names(), name) == ethernet_setting_names().end())
		throw std::invalid_argument(fmt::format("an Ethernet link has no '{}'; it has {}",
							name,
							fmt::join(ethernet_setting_names(), ", ")));
	LinkConfig config = config_of(settings);
	apply_link_setting(config, name, value);
	settings = {config.up, config.faults};
}

string ethernet_setting(const ethernet::LinkSettings &settings, string_view name)
{
	return link_setting(config_of(settings), name);
}

} // namespace weft::weftd
