// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/guest_attachment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include <spdlog/logger.h>
#include <spdlog/spdlog.h>

#include "net/ethernet/frame_reader.hpp"
#include "base/rated_sink.hpp"

namespace weft::ethernet
{

namespace
{

// Budget of one guest before other guests are served: bytes read, and frames forwarded.
constexpr std::size_t kReadAtOnce = 64 << 10;
constexpr std::size_t kSlice = 64;
// Number of bytes that contain at most kSlice frames.
constexpr std::size_t kSliceBytes = kSlice * (FrameReader::kLengthBytes + kLeastFrame);

std::shared_ptr<spdlog::logger> logger_of(Loop &loop, const std::string &name)
{
	const auto all = spdlog::default_logger();
	auto log = std::make_shared<spdlog::logger>(
		name, std::make_shared<RatedSink>(loop.environment(), name, all->sinks()));
	log->set_level(all->level());
	return log;
}

} // namespace

// The connection of a guest, and the frames queued for it.
class GuestAttachment::Guest
{
public:
	Guest(Loop &loop, FileDescriptor socket, GuestAttachment &attachment)
	    : socket_(std::move(socket)), attachment_(attachment), input_(kReadAtOnce),
	      flush_(loop, [this] { contain([this] { flush(); }); }),
	      rest_(loop, [this] { contain([this] { hand_on(); }); }),
	      watch_(loop, socket_.get(), Watch::kReadable,
		     [this](unsigned ready) { contain([this, ready] { work(ready); }); })
	{
	}

	// Returns true if the guest has disconnected. Its last frames may not have been read yet.
	bool hung_up()
	{
		pollfd state{socket_.get(), POLLRDHUP, 0};
		return ::poll(&state, 1, 0) > 0 && state.revents & (POLLRDHUP | POLLHUP | POLLERR);
	}

	// Returns false if there is no space. The frame is sent together with the others of this
	// iteration of the loop.
	bool queue(const Frame &frame)
	{
		if (output_.size() - sent_ + FrameReader::kLengthBytes + frame.size() > kMostQueued)
			return false;
		const auto prefix = length_prefix(frame.size());
		output_.insert(output_.end(), prefix.begin(), prefix.end());
		output_.insert(output_.end(), frame.begin(), frame.end());
		if (!blocked_)
			flush_.signal();
		return true;
	}

private:
	// Contains an error of one guest, for example lack of memory: only this guest is detached.
	template<typename Work>
	void contain(const Work &work)
	{
		GuestAttachment &attachment = attachment_;
		try {
			work();
		} catch (const std::exception &error) {
			attachment.end(error.what());
		}
	}

	// The call that ends the guest must be the last one, because it destroys this object.
	void work(unsigned ready)
	{
		if (ready & Watch::kWritable && !write())
			return attachment_.end("the connection failed");
		if (ready & Watch::kReadable)
			read();
	}

	void flush()
	{
		if (!write())
			attachment_.end("the connection failed");
	}

	void read()
	{
		// Process the rest of the last read first.
		if (!input_left_.empty())
			return;
		const auto size = ::recv(socket_.get(), input_.data(), input_.size(), MSG_DONTWAIT);
		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (size <= 0)
			return attachment_.end("the guest has disconnected");
		input_left_ = std::span(input_).first(static_cast<std::size_t>(size));
		hand_on();
	}

	void hand_on()
	{
		Port &port = attachment_.port_;
		bool follows = true;
		for (std::size_t frames = 0; frames < kSlice && follows && !input_left_.empty();) {
			const auto part =
				input_left_.first(std::min(kSliceBytes, input_left_.size()));
			input_left_ = input_left_.subspan(part.size());
			follows = reader_.feed(part, [&](Frame frame) {
				++frames;
				port.send(std::make_shared<const Frame>(std::move(frame)));
			});
		}
		if (!input_left_.empty())
			rest_.signal();
		port.counters.xmit_undersize +=
			reader_.undersize() - std::exchange(undersize_, reader_.undersize());
		port.counters.xmit_oversize +=
			reader_.oversize() - std::exchange(oversize_, reader_.oversize());
		if (!follows)
			attachment_.end("it sent an invalid frame length");
	}

	// Writes queued frames. Returns false if the connection cannot be written to any more.
	bool write()
	{
		while (sent_ < output_.size()) {
			const auto size =
				::send(socket_.get(), output_.data() + sent_,
				       output_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (size < 0 && errno == EINTR)
				continue;
			if (size < 0 && errno != EAGAIN)
				return false;
			if (size < 0) {
				wait_for_room(true);
				return true;
			}
			sent_ += static_cast<std::size_t>(size);
		}
		output_.clear();
		sent_ = 0;
		wait_for_room(false);
		return true;
	}

	void wait_for_room(bool blocked)
	{
		// Remove the sent bytes once they are more than half of the buffer.
		if (sent_ > output_.size() / 2) {
			output_.erase(output_.begin(),
				      output_.begin() + static_cast<std::ptrdiff_t>(sent_));
			sent_ = 0;
		}
		if (std::exchange(blocked_, blocked) != blocked)
			watch_.want(blocked ? Watch::kReadable | Watch::kWritable
					    : Watch::kReadable);
	}

	const FileDescriptor socket_;
	GuestAttachment &attachment_;
	std::vector<std::uint8_t> input_;
	std::span<const std::uint8_t> input_left_; // the part that is not processed yet
	FrameReader reader_;
	std::uint64_t undersize_ = 0, oversize_ = 0; // reader counts that are already reported
	std::vector<std::uint8_t> output_;
	std::size_t sent_ = 0; // number of sent bytes of output_
	bool blocked_ = false; // true until the guest reads
	Wakeup flush_, rest_;
	Watch watch_;
};

GuestAttachment::GuestAttachment(Loop &loop, std::string name, const std::filesystem::path &socket)
    : loop_(loop), socket_(socket), log_(logger_of(loop, name)),
      port_(std::move(name),
	    [this](const FramePtr &frame) {
		    if (!guest_ || !guest_->queue(*frame))
			    ++port_.counters.rcv_discards;
	    }),
      acceptor_(loop, UnixListener(socket, UnixListener::Access::directory_group),
		[this](FileDescriptor connection) { take(std::move(connection)); })
{
}

GuestAttachment::~GuestAttachment() = default;

void GuestAttachment::take(FileDescriptor connection)
{
	// A new connection may be reported before the end of the previous one.
	if (guest_ && guest_->hung_up())
		end("the guest has disconnected");
	// The connection of a second guest is closed here.
	if (guest_) {
		log_->warn("a second guest was refused");
		return;
	}
	try {
		guest_ = std::make_unique<Guest>(loop_, std::move(connection), *this);
	} catch (const std::exception &error) {
		log_->warn("a guest was refused: {}", error.what());
		return;
	}
	log_->info("the guest has connected");
}

void GuestAttachment::end(const char *why)
{
	guest_.reset();
	log_->info("the guest was disconnected: {}", why);
}

} // namespace weft::ethernet
