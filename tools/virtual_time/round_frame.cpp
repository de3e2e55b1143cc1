// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/round_frame.hpp"

#include <algorithm>
#include <cstring>

namespace weft::virtual_time
{

namespace
{

template<class T>
bool all_zero(const T &bytes)
{
	return std::ranges::all_of(bytes, [](auto byte) { return byte == 0; });
}

// Reads a structure at the beginning of a body. Returns nothing if the body is shorter.
template<class Body>
std::optional<Body> read_begin(std::span<const std::byte> bytes)
{
	if (bytes.size() < sizeof(Body))
		return std::nullopt;
	Body body;
	std::memcpy(&body, bytes.data(), sizeof(body));
	return body;
}

template<class Body>
std::optional<Body> read_whole(std::span<const std::byte> bytes)
{
	return bytes.size() == sizeof(Body) ? read_begin<Body>(bytes) : std::nullopt;
}

template<class Body>
void append(RoundBuffer &out, RoundFrameType type, const Body &body,
	    std::span<const std::byte> rest = {})
{
	const RoundFrameHeader header{
		static_cast<std::uint32_t>(sizeof(body) + rest.size()), type, {}};
	const auto head = std::as_bytes(std::span(&header, 1));
	const auto begin = std::as_bytes(std::span(&body, 1));
	out.insert(out.end(), head.begin(), head.end());
	out.insert(out.end(), begin.begin(), begin.end());
	out.insert(out.end(), rest.begin(), rest.end());
}

} // namespace

void append_hello(RoundBuffer &out, std::uint16_t place, std::uint64_t lab)
{
	RoundHello body{};
	std::memcpy(body.magic, kRoundMagic, sizeof(body.magic));
	body.version = kRoundVersion;
	body.place = place;
	body.lab = lab;
	append(out, RoundFrameType::hello, body);
}

void append_packet(RoundBuffer &out, const RoundPacket &packet)
{
	const RoundPacketBody body{packet.trunk, std::uint32_t{0}, packet.arrival, packet.number};
	append(out, RoundFrameType::packet, body, packet.frame);
}

void append_report(RoundBuffer &out, std::uint64_t round, std::uint64_t next, bool finished)
{
	append(out, RoundFrameType::report, RoundReport{round, next, finished, {}});
}

void append_grant(RoundBuffer &out, std::uint64_t round, std::uint64_t limit)
{
	append(out, RoundFrameType::grant, RoundGrant{round, limit});
}

void append_end(RoundBuffer &out, const RoundEnd &end)
{
	const auto text = std::as_bytes(std::span(end.reason));
	append(out, RoundFrameType::end, RoundEndBody{end.failed, {}},
	       text.first(std::min(text.size(), kMostRoundText)));
}

std::optional<RoundHello> read_hello(std::span<const std::byte> body)
{
	const auto hello = read_whole<RoundHello>(body);
	if (!hello || std::memcmp(hello->magic, kRoundMagic, sizeof(hello->magic)) != 0 ||
	    hello->zero != 0)
		return std::nullopt;
	return hello;
}

std::optional<RoundPacket> read_round_packet(std::span<const std::byte> body)
{
	const auto begin = read_begin<RoundPacketBody>(body);
	if (!begin || begin->zero != 0 || begin->arrival >= kNoTime)
		return std::nullopt;
	const auto frame = body.subspan(sizeof(*begin));
	if (frame.empty() || frame.size() > kMostTrunkFrame)
		return std::nullopt;
	return RoundPacket{
		begin->trunk, begin->arrival, begin->number, {frame.begin(), frame.end()}};
}

std::optional<RoundReport> read_report(std::span<const std::byte> body)
{
	const auto report = read_whole<RoundReport>(body);
	if (!report || report->next > kNoTime || report->finished > 1 || !all_zero(report->zero))
		return std::nullopt;
	return report;
}

std::optional<RoundGrant> read_grant(std::span<const std::byte> body)
{
	const auto grant = read_whole<RoundGrant>(body);
	if (!grant || grant->limit > kNoTime)
		return std::nullopt;
	return grant;
}

std::optional<RoundEnd> read_end(std::span<const std::byte> body)
{
	const auto begin = read_begin<RoundEndBody>(body);
	if (!begin || begin->failed > 1 || !all_zero(begin->zero) ||
	    body.size() > sizeof(*begin) + kMostRoundText)
		return std::nullopt;
	RoundEnd end{begin->failed != 0, {}};
	for (const std::byte each : body.subspan(sizeof(*begin))) {
		const auto c = static_cast<char>(each);
		end.reason += c >= ' ' && c <= '~' ? c : '?';
	}
	return end;
}

void RoundFrameReader::add(std::span<const std::byte> bytes)
{
	bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_));
	taken_ = 0;
	bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::optional<RoundFrame> RoundFrameReader::next()
{
	const auto rest = std::span<const std::byte>(bytes_).subspan(taken_);
	const auto header = read_begin<RoundFrameHeader>(rest);
	if (malformed_ || !header)
		return std::nullopt;
	if (header->body_bytes > kMostRoundBody || header->type < RoundFrameType::hello ||
	    header->type > RoundFrameType::end || !all_zero(header->zero)) {
		malformed_ = true;
		return std::nullopt;
	}
	if (rest.size() < sizeof(*header) + header->body_bytes)
		return std::nullopt;
	taken_ += sizeof(*header) + header->body_bytes;
	return RoundFrame{header->type, rest.subspan(sizeof(*header), header->body_bytes)};
}

std::string seconds_text(std::uint64_t nanoseconds)
{
	constexpr std::uint64_t second = 1'000'000'000;
	const auto fraction = std::to_string(nanoseconds % second);
	return std::to_string(nanoseconds / second) + "." + std::string(9 - fraction.size(), '0') +
	       fraction;
}

} // namespace weft::virtual_time
