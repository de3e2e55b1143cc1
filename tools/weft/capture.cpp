// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/capture.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "base/file_descriptor.hpp"
#include "base/printable.hpp"
#include "weft/control_client.hpp"
#include "weft/signals.hpp"

namespace weft::cli
{

namespace
{

using nlohmann::json;

// Limit of the bytes that weftd has recorded and the reader has not yet received.
constexpr off_t kMostBehind = 256 << 20;
constexpr off_t kFreedAtOnce = 1 << 20;

[[noreturn]] void fail(const std::string &what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

/*
 * Copies the file that weftd writes to standard output while it grows. The file is unlinked as soon
 * as it is open, and copied data is deallocated, so the file occupies only the space of data that
 * the reader has not received yet.
 */
class Follower
{
public:
	explicit Follower(const std::filesystem::path &socket_directory)
	    : path_(socket_directory / fmt::format("capture-{}", ::getpid())),
	      file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)),
	      changes_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK))
	{
		if (file_.get() < 0)
			fail(path_.string());
		if (changes_.get() < 0 ||
		    ::inotify_add_watch(changes_.get(), path_.c_str(), IN_MODIFY) < 0) {
			const int reason = errno;
			forget_name();
			errno = reason;
			fail("inotify");
		}
	}
	~Follower() { forget_name(); }
	Follower(const Follower &) = delete;
	Follower &operator=(const Follower &) = delete;

	const std::filesystem::path &path() const { return path_; }
	// Returns a descriptor that is readable after the file has grown.
	int changes() const { return changes_.get(); }

	// Must be called when weftd has opened the file.
	void forget_name()
	{
		if (!named_)
			return;
		named_ = false;
		::unlink(path_.c_str());
	}

	enum class Passed { all, part, reader_gone };

	// Writes some of the new packets. Does not wait if standard output is ready.
	Passed pass_on()
	{
		std::array<char, PIPE_BUF> buffer;
		inotify_event event;
		while (::read(changes_.get(), &event, sizeof(event)) > 0) {
		}
		const auto bytes = ::pread(file_.get(), buffer.data(), buffer.size(), done_);
		if (bytes < 0)
			fail("the capture");
		if (bytes == 0)
			return Passed::all;
		// A pipe that is ready accepts this amount at once. If it is full, this waits in
		// poll(), which signals interrupt.
		pollfd out{STDOUT_FILENO, POLLOUT, 0};
		if (::poll(&out, 1, 0) <= 0)
			return Passed::part;
		const auto written =
			::write(STDOUT_FILENO, buffer.data(), static_cast<std::size_t>(bytes));
		if (written < 0 && errno == EPIPE)
			return Passed::reader_gone;
		if (written < 0 && errno != EINTR && errno != EAGAIN)
			fail("standard output");
		done_ += std::max<ssize_t>(written, 0);
		free_passed();
		return Passed::part;
	}

private:
	void free_passed()
	{
		if (done_ - freed_ < kFreedAtOnce)
			return;
		// If the file system does not support this, the data is deallocated at the end.
		::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, freed_,
			    done_ - freed_);
		freed_ = done_;
		struct stat now{};
		if (!::fstat(file_.get(), &now) && now.st_size - done_ > kMostBehind)
			throw std::runtime_error("the reader of the capture is too slow");
	}

	const std::filesystem::path path_;
	const FileDescriptor file_;
	const FileDescriptor changes_;
	bool named_ = true;
	off_t done_ = 0;  // number of bytes that were written to standard output
	off_t freed_ = 0; // number of bytes that were deallocated
};

int left_of(const Clock::time_point *end)
{
	if (!end)
		return -1;
	const auto left =
		std::chrono::ceil<std::chrono::milliseconds>(*end - Environment::host().now());
	return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

} // namespace

void capture(const std::filesystem::path &socket_directory, const std::string &link,
	     const std::string &file, double seconds)
{
	// Signals stop the capture cleanly, so that the file is complete.
	const auto signals = signal_descriptor({SIGINT, SIGTERM, SIGHUP});
	std::optional<Follower> follower;
	if (file == "-") {
		if (::isatty(STDOUT_FILENO))
			throw std::runtime_error(
				"a capture cannot be shown on a terminal: pipe it to a "
				"program, as `weft capture LINK -w - | tshark -r -`");
		::signal(SIGPIPE, SIG_IGN);
		follower.emplace(socket_directory);
	}
	const auto path = follower ? follower->path() : std::filesystem::path(file);
	ControlClient client(socket_directory);
	const auto started =
		client.call("capture.start", {{"link", link},
					      {"file", std::filesystem::absolute(path).string()},
					      {"at_once", follower.has_value()}});
	if (follower)
		follower->forget_name();
	std::cerr << fmt::format("capturing {} links into {}{}\n", started.at("links").size(),
				 follower ? "standard output" : printable(file),
				 seconds > 0 ? "" : "; Ctrl-C ends it");
	const auto end =
		Environment::host().now() +
		std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
	// Request packets recorded before a signal or the time limit, but none recorded after it.
	json result;
	for (bool recording = true;;) {
		const auto passed = follower ? follower->pass_on() : Follower::Passed::all;
		if (passed == Follower::Passed::reader_gone)
			break;
		if (passed == Follower::Passed::all && !recording)
			break;
		// An error of standard output, for example that the reader has exited, is reported
		// even if no events are requested.
		const bool more = passed == Follower::Passed::part;
		pollfd waiting[] = {
			{signals.get(), POLLIN, 0},
			{recording ? client.fd() : -1, POLLIN, 0},
			{follower ? STDOUT_FILENO : -1, static_cast<short>(more ? POLLOUT : 0), 0},
			{follower && !more ? follower->changes() : -1, POLLIN, 0}};
		const int ready = ::poll(waiting, std::size(waiting),
					 left_of(recording && seconds > 0 ? &end : nullptr));
		if (ready < 0 && errno != EINTR)
			fail("poll");
		const bool signalled = ready > 0 && waiting[0].revents;
		if ((signalled && !recording) || (ready > 0 && waiting[2].revents & POLLERR))
			break;
		const bool over = seconds > 0 && Environment::host().now() >= end;
		if (recording && (over || signalled || (ready > 0 && waiting[1].revents))) {
			recording = false;
			result = client.call("capture.stop");
			signalfd_siginfo taken;
			if (signalled && ::read(signals.get(), &taken, sizeof(taken)) < 0)
				fail("signals");
		}
	}
	if (result.is_null())
		result = client.call("capture.stop");
	std::cerr << fmt::format("{} packets\n", result.at("packets").get<std::uint64_t>());
	if (!result.at("full").get<bool>())
		return;
	// This client sets no limit, but on the host of a place the lab sets one.
	if (const auto limit = result.find("limit"); limit != result.end())
		throw std::runtime_error(fmt::format(
			"{} is incomplete, because a place has recorded {} MiB, which is the limit "
			"here, or could not write its file; capture fewer links, or run the "
			"command on the host that started the lab",
			path.string(), limit->get<std::uint64_t>() >> 20));
	throw std::runtime_error(
		fmt::format("{} is incomplete, because it could not be written; is its disk full?",
			    path.string()));
}

} // namespace weft::cli
