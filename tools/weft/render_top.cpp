// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Formats the screen of `weft top` from two samples of the fabric's counters.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "weft/render.hpp"

namespace weft::cli
{

using nlohmann::json;
using std::string;

namespace
{

constexpr std::array<const char *, 7> kNoErrors{
	"xmit_packets",           "rcv_packets",           "xmit_data", "rcv_data",
	"multicast_xmit_packets", "multicast_rcv_packets", "xmit_wait"};

// Gives access to a sample's counters by name, from its columns.
class Sample
{
public:
	explicit Sample(const json &sample)
	    : ports_(sample.at("ports")), time_(sample.at("time").get<double>())
	{
		std::size_t column = 0;
		for (const auto &name : sample.at("columns")) {
			columns_[name.get<string>()] = column;
			if (std::ranges::find(kNoErrors, name.get<string>()) == kNoErrors.end())
				errors_.push_back(column);
			++column;
		}
	}

	double time() const { return time_; }
	double value(const string &port, const char *name) const
	{
		const auto values = ports_.find(port);
		return values == ports_.end() ? 0 : values->at(columns_.at(name)).get<double>();
	}
	double errors(const string &port) const
	{
		const auto values = ports_.find(port);
		double sum = 0;
		if (values != ports_.end())
			for (const auto column : errors_)
				sum += values->at(column).get<double>();
		return sum;
	}

private:
	const json &ports_;
	const double time_;
	std::map<string, std::size_t> columns_;
	std::vector<std::size_t> errors_;
};

struct Row {
	string name, rate, faults;
	bool up;
	double bits[2]{}, packets[2]{}; // per second, from each end
	double errors = 0, new_errors = 0, waits = 0;
};

// Returns the rate of a counter that only increases. A restarted daemon counts from zero.
double rate(double before, double after, double seconds)
{
	return seconds > 0 && after > before ? (after - before) / seconds : 0;
}

Row row_of(const json &link, bool up, const Sample &before, const Sample &now)
{
	const auto &settings = link.at("settings");
	Row row{link.at("name").get<string>(),
		fmt::format("{} {}", settings.at("width").get<string>(),
			    settings.at("speed").get<string>()),
		link_faults(settings), up};
	const double seconds = now.time() - before.time();
	for (unsigned side = 0; side < 2; ++side) {
		const auto port = link.at("ends").at(side).get<string>();
		const auto grown = [&](const char *name) {
			return rate(before.value(port, name), now.value(port, name), seconds);
		};
		row.bits[side] = grown("xmit_data") * 32; // the counter is in words of four bytes
		row.packets[side] = grown("xmit_packets");
		row.waits += grown("xmit_wait");
		row.errors += now.errors(port);
		row.new_errors += rate(before.errors(port), now.errors(port), seconds);
	}
	return row;
}

void sort(std::vector<Row> &rows, TopOrder order)
{
	const auto key = [order](const Row &row) {
		switch (order) {
		case TopOrder::rate:
			return row.bits[0] + row.bits[1];
		case TopOrder::errors:
			return row.new_errors > 0 ? 1e18 + row.new_errors : row.errors;
		case TopOrder::name:
			break;
		}
		return 0.0;
	};
	std::ranges::stable_sort(rows, [&](const Row &a, const Row &b) { return key(a) > key(b); });
}

// Formats a value in at most five characters: "1.2k", "34.5M".
string scaled(double value)
{
	constexpr const char *units[] = {"", "k", "M", "G", "T"};
	unsigned unit = 0;
	for (; value >= 999.5 && unit + 1 < std::size(units); ++unit)
		value /= 1000;
	return unit ? fmt::format("{:.{}f}{}", value, value < 99.95 ? 1 : 0, units[unit])
		    : fmt::format("{:.{}f}", value,
				  value < 9.95 && value != std::floor(value) ? 1 : 0);
}

// Returns the state of a link. A link that loses packets must not look like a healthy one.
const char *state_of(const Row &row)
{
	if (!row.up)
		return "DOWN";
	return row.faults.empty() ? "up" : "fault";
}

const char *name_of(TopOrder order)
{
	switch (order) {
	case TopOrder::rate:
		return "rate";
	case TopOrder::errors:
		return "errors";
	case TopOrder::name:
		return "name";
	}
	return "";
}

} // namespace

std::optional<TopOrder> top_order_of(char key)
{
	switch (key) {
	case 'r':
		return TopOrder::rate;
	case 'e':
		return TopOrder::errors;
	case 'n':
		return TopOrder::name;
	default:
		return std::nullopt;
	}
}

string top_text(const json &fabric, const json &before, const json &now, const TopView &view)
{
	const Sample earlier(before), later(now);
	const auto &down = now.at("down");
	std::vector<Row> rows;
	std::size_t longest = 12;
	for (const auto &link : fabric.at("links")) {
		const bool up = std::ranges::find(down, link.at("name")) == down.end();
		rows.push_back(row_of(link, up, earlier, later));
		longest = std::max(longest, rows.back().name.size());
	}
	sort(rows, view.order);

	std::vector<string> lines;
	string manager = "no subnet manager";
	if (const auto &state = now.at("subnet_manager"); !state.is_null())
		manager = fmt::format("sm {}, {} sweeps", state.at("state").get<string>(),
				      state.at("sweeps").get<std::uint64_t>());
	lines.push_back(fmt::format("weft top  {}", view.title));
	lines.push_back(fmt::format("links {} up, {} down   guests {} of {}   {}",
				    rows.size() - down.size(), down.size(), now.at("guests").size(),
				    fabric.at("hosts").size(), manager));
	lines.push_back(
		fmt::format("by {} (r rate, e errors, n name, q ends); > is from the first end",
			    name_of(view.order)));
	if (const auto missing = now.find("missing"); missing != now.end())
		for (const auto &place : *missing)
			lines.push_back(fmt::format(
				"missing: place {} ({}): {}", place.at("place").get<string>(),
				place.at("host").get<string>(), place.at("reason").get<string>()));
	lines.emplace_back();
	lines.push_back(fmt::format("{:<{}}  {:<5} {:<7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
				    "LINK", longest, "STATE", "SPEED", "> bit/s", "< bit/s",
				    "> pkt/s", "< pkt/s", "errors", "err/s", "waits/s"));
	const std::size_t room = view.height > lines.size() ? view.height - lines.size() : 0;
	// If the screen is too small, its last line reports how many links are omitted.
	const std::size_t fits = !view.height || rows.size() <= room ? rows.size()
				 : room                              ? room - 1
								     : 0;
	for (std::size_t i = 0; i < fits; ++i) {
		const Row &row = rows[i];
		lines.push_back(fmt::format(
			"{:<{}}  {:<5} {:<7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}{}", row.name,
			longest, state_of(row), row.rate, scaled(row.bits[0]), scaled(row.bits[1]),
			scaled(row.packets[0]), scaled(row.packets[1]), scaled(row.errors),
			scaled(row.new_errors), scaled(row.waits), row.faults));
	}
	if (fits < rows.size())
		lines.push_back(fmt::format("... and {} more links", rows.size() - fits));
	string out;
	for (std::size_t i = 0; i < lines.size() && (!view.height || i < view.height); ++i) {
		string line = printable(lines[i]);
		if (view.width && line.size() > view.width)
			line.resize(view.width);
		out += (i ? "\n" : "") + line;
	}
	return out;
}

} // namespace weft::cli
