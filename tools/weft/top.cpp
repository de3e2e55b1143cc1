// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/top.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "weft/control_client.hpp"
#include "weft/samples.hpp"
#include "weft/signals.hpp"

namespace weft::cli
{

using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace
{

void write_all(const std::string &text)
{
	for (std::size_t sent = 0; sent < text.size();) {
		const auto bytes = ::write(STDOUT_FILENO, text.data() + sent, text.size() - sent);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0)
			throw std::system_error(errno, std::generic_category(), "the terminal");
		sent += static_cast<std::size_t>(bytes);
	}
}

// Configures the terminal: keys are read at once and not echoed, an alternate screen is used, and
// the cursor is hidden. The destructor restores the terminal.
class Screen
{
public:
	Screen()
	{
		if (::tcgetattr(STDIN_FILENO, &before_))
			throw std::system_error(errno, std::generic_category(), "the terminal");
		auto raw = before_;
		raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
		::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
		write_all("\x1b[?1049h\x1b[?25l");
	}
	Screen(const Screen &) = delete;
	Screen &operator=(const Screen &) = delete;
	~Screen()
	{
		constexpr char back[] = "\x1b[?25h\x1b[?1049l";
		// A failure cannot be reported.
		[[maybe_unused]] const auto written =
			::write(STDOUT_FILENO, back, sizeof(back) - 1);
		::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
	}

	// Overwrites the screen line by line, and erases the rest of each line.
	static void show(const std::string &text)
	{
		std::string out = "\x1b[H";
		for (const char c : text)
			out += c == '\n' ? std::string("\x1b[K\r\n") : std::string(1, c);
		write_all(out + "\x1b[J");
	}

private:
	termios before_{};
};

TopView view_of_terminal(bool terminal)
{
	TopView view;
	winsize size{};
	if (terminal && !::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row) {
		view.width = size.ws_col;
		view.height = size.ws_row;
	}
	return view;
}

// Maximum age of the fabric's description, which shows faults that were injected later.
constexpr auto kDescriptionAge = std::chrono::seconds(5);

// Returns true if the fabric differs from its description.
bool changed(const json &fabric, const json &sample)
{
	const auto &ports = sample.at("ports");
	if (ports.size() != 2 * fabric.at("links").size())
		return true;
	for (const auto &link : fabric.at("links"))
		for (const auto &end : link.at("ends"))
			if (!ports.contains(end.get<std::string>()))
				return true;
	return false;
}

enum class Event { time, again, end };

// Waits for @until, a key or a signal, whichever is first. Keys change @order.
Event wait(Clock::time_point until, int signals, bool keys, TopOrder &order)
{
	for (;;) {
		const auto left =
			std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
		if (left <= 0)
			return Event::time;
		pollfd waiting[] = {{signals, POLLIN, 0}, {keys ? STDIN_FILENO : -1, POLLIN, 0}};
		if (::poll(waiting, 2, static_cast<int>(left)) < 0 && errno != EINTR)
			throw std::system_error(errno, std::generic_category(), "poll");
		if (waiting[0].revents) {
			signalfd_siginfo info{};
			const bool resized = ::read(signals, &info, sizeof(info)) == sizeof(info) &&
					     info.ssi_signo == SIGWINCH;
			return resized ? Event::again : Event::end;
		}
		if (!waiting[1].revents)
			continue;
		char key = 'q';
		if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q')
			return Event::end;
		const auto chosen = top_order_of(key);
		if (chosen) {
			order = *chosen;
			return Event::again;
		}
	}
}

} // namespace

void run_top(const std::filesystem::path &socket_directory, double interval, unsigned count,
	     TopOrder order)
{
	const bool terminal = ::isatty(STDOUT_FILENO) && ::isatty(STDIN_FILENO);
	const auto signals = signal_descriptor({SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH});
	ControlClient client(socket_directory);
	Samples samples;
	samples.add(client.call("fabric.sample"));
	// Described after the sample: if the ports change in between, the next sample is complete,
	// and is compared with the description.
	json fabric = client.call("fabric.show");
	std::optional<Screen> screen;
	if (terminal)
		screen.emplace();
	const auto step = std::chrono::duration_cast<Clock::duration>(
		std::chrono::duration<double>(interval));
	auto next = Clock::now() + step, described = Clock::now();
	unsigned shown = 0;
	const auto show = [&] {
		TopView view = view_of_terminal(terminal);
		view.order = order;
		view.title = socket_directory.string();
		const auto text = top_text(fabric, samples.before(), samples.now(), view);
		if (screen)
			Screen::show(text);
		else
			write_all(text + '\n');
	};
	// On a screen, show the table at once, without rates. Otherwise print it only when it is
	// complete.
	if (screen)
		show();
	for (;;) {
		switch (wait(next, signals.get(), terminal, order)) {
		case Event::end:
			return;
		case Event::again:
			break;
		case Event::time:
			next = Clock::now() + step;
			if ((samples.add(client.call("fabric.sample", samples.request())) &&
			     changed(fabric, samples.now())) ||
			    Clock::now() - described >= kDescriptionAge) {
				fabric = client.call("fabric.show");
				described = Clock::now();
			}
			++shown;
			break;
		}
		if (screen || shown)
			show();
		if (count && shown == count)
			return;
	}
}

} // namespace weft::cli
