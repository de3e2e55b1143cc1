// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/control_client.hpp"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <set>
#include <stdexcept>
#include <system_error>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/runtime_directory.hpp"
#include "base/unix_listener.hpp"
#include "weft/render.hpp"

namespace weft::cli
{

using nlohmann::json;

namespace
{

constexpr const char *kSocket = "control.sock";

bool is_served(const std::filesystem::path &path)
{
	try {
		connect_unix(path);
		return true;
	} catch (const std::system_error &) {
		return false;
	}
}

// Adds the labs of which a place runs on this host, and whose directories `weft lab place` has made
// in @parent for this user. Others can create directories there if it is /tmp.
void add_labs(std::set<std::filesystem::path> &labs, const std::filesystem::path &parent)
{
	std::error_code none;
	for (const auto &entry : std::filesystem::directory_iterator(parent, none)) {
		struct stat status;
		if (!entry.path().filename().string().starts_with("weft-place-") ||
		    ::lstat(entry.path().c_str(), &status) || !S_ISDIR(status.st_mode) ||
		    status.st_uid != ::geteuid())
			continue;
		if (const auto lab = entry.path() / "lab"; is_served(lab / kSocket))
			labs.insert(lab);
	}
}

FileDescriptor connect(const std::filesystem::path &given)
{
	const auto socket_directory = find_lab(given);
	const auto path = socket_directory / kSocket;
	try {
		return connect_unix(path);
	} catch (const std::system_error &error) {
		throw std::runtime_error(fmt::format(
			"no weftd serves {} ({}); start a lab with `weft lab up`, or name its --socket-dir",
			socket_directory.string(), error.code().message()));
	}
}

} // namespace

std::filesystem::path find_lab(const std::filesystem::path &socket_directory)
{
	if (socket_directory != default_socket_directory() || is_served(socket_directory / kSocket))
		return socket_directory;
	std::set<std::filesystem::path> labs;
	add_labs(labs, socket_directory.parent_path());
	add_labs(labs, std::filesystem::temp_directory_path());
	if (labs.size() < 2)
		return labs.empty() ? socket_directory : *labs.begin();
	std::string names;
	for (const auto &lab : labs)
		names += fmt::format("{}{}", names.empty() ? "" : ", ", lab.string());
	throw std::runtime_error(fmt::format(
		"several labs have a place on this host; choose one by --socket-dir: {}", names));
}

ControlClient::ControlClient(const std::filesystem::path &socket_directory)
    : socket_(connect(socket_directory))
{
}

json ControlClient::call(const std::string &command, json arguments)
{
	arguments["command"] = command;
	const std::string line = arguments.dump() + '\n';
	for (std::size_t sent = 0; sent < line.size();) {
		const auto bytes =
			::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0)
			throw std::runtime_error("weftd has ended");
		sent += static_cast<std::size_t>(bytes);
	}
	const json answer = json::parse(read_line(), nullptr, false);
	if (!answer.is_object())
		throw std::runtime_error("the server of the socket is not weftd");
	if (!answer.value("ok", false))
		throw std::runtime_error(answer.value("error", "weftd refused without a reason"));
	json result = answer.value("result", json::object());
	if (const auto missing = answer.find("missing");
	    missing != answer.end() && !result.contains("missing"))
		std::cerr << missing_text(*missing);
	return result;
}

std::string ControlClient::read_line()
{
	for (;;) {
		if (const auto end = received_.find('\n'); end != std::string::npos) {
			auto line = received_.substr(0, end);
			received_.erase(0, end + 1);
			return line;
		}
		char buffer[16384];
		const auto bytes = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes <= 0)
			throw std::runtime_error("weftd has ended");
		received_.append(buffer, static_cast<std::size_t>(bytes));
	}
}

} // namespace weft::cli
