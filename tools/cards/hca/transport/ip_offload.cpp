// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/ip_offload.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include <ib/endian.hpp>

namespace weft::hca::transport
{

namespace
{

constexpr std::size_t kEncapsulationBytes = 4;
constexpr std::uint16_t kEthertypeIpv4 = 0x0800;
constexpr std::uint16_t kEthertypeIpv6 = 0x86dd;
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint8_t kProtocolUdp = 17;

std::uint8_t get8(std::span<const std::byte> bytes, std::size_t at)
{
	return std::to_integer<std::uint8_t>(bytes[at]);
}

std::uint16_t get16(std::span<const std::byte> bytes, std::size_t at)
{
	return static_cast<std::uint16_t>(get8(bytes, at) << 8 | get8(bytes, at + 1));
}

void put16(std::span<std::byte> bytes, std::size_t at, std::uint16_t value)
{
	bytes[at] = static_cast<std::byte>(value >> 8);
	bytes[at + 1] = static_cast<std::byte>(value);
}

/* Positions in an IP packet. Offsets count from the IP header. */
struct Layout {
	bool ipv6 = false;
	bool fragment = false;
	bool options = false;
	std::uint8_t protocol = 0;
	std::size_t l4 = 0;
	/* End of the packet according to its length field, but at most the end of the data. */
	std::size_t end = 0;

	/* Returns the offset of the L4 checksum field from l4, or nothing for other protocols. */
	std::optional<std::size_t> checksum_field() const
	{
		if (protocol == kProtocolTcp)
			return 16;
		if (protocol == kProtocolUdp)
			return 6;
		return std::nullopt;
	}
	/*
	 * Returns true if TCP or UDP has its complete header, so that the checksum can be computed.
	 */
	bool has_l4() const
	{
		std::size_t need = protocol == kProtocolTcp ? 20 : 8;
		return !fragment && checksum_field() && l4 + need <= end;
	}
};

bool lay_out_ipv4(std::span<const std::byte> ip, Layout &out)
{
	if (ip.size() < 20 || get8(ip, 0) >> 4 != 4)
		return false;
	std::size_t header = (get8(ip, 0) & 0xf) * 4u;
	std::size_t total = get16(ip, 2);
	if (header < 20 || total < header || total > ip.size())
		return false;
	/* The flag "more fragments" is set, or the offset is not zero. */
	out.fragment = (get16(ip, 6) & 0x3fff) != 0;
	out.options = header > 20;
	out.protocol = get8(ip, 9);
	out.l4 = header;
	out.end = total;
	return true;
}

bool lay_out_ipv6(std::span<const std::byte> ip, Layout &out)
{
	if (ip.size() < 40 || get8(ip, 0) >> 4 != 6)
		return false;
	std::size_t total = 40u + get16(ip, 4);
	if (total > ip.size())
		return false;
	out.ipv6 = true;
	out.protocol = get8(ip, 6);
	out.l4 = 40;
	out.end = total;
	constexpr std::uint8_t hop_by_hop = 0, routing = 43, fragment = 44, destination = 60;
	/* Each iteration advances by at least eight bytes, so the loop ends. */
	while (out.protocol == hop_by_hop || out.protocol == routing ||
	       out.protocol == destination) {
		if (out.l4 + 8 > out.end)
			return false;
		std::size_t length = 8u + 8u * get8(ip, out.l4 + 1);
		out.protocol = get8(ip, out.l4);
		out.l4 += length;
		out.options = true;
	}
	out.fragment = out.protocol == fragment;
	return out.l4 <= out.end;
}

std::optional<Layout> lay_out(std::span<const std::byte> payload)
{
	if (payload.size() < kEncapsulationBytes)
		return std::nullopt;
	Layout layout;
	auto ip = payload.subspan(kEncapsulationBytes);
	switch (get16(payload, 0)) {
	case kEthertypeIpv4:
		if (lay_out_ipv4(ip, layout))
			return layout;
		break;
	case kEthertypeIpv6:
		if (lay_out_ipv6(ip, layout))
			return layout;
		break;
	}
	return std::nullopt;
}

/*
 * Returns the sum of the pseudo header and the L4 part, including the checksum field (RFC 9293 3.1,
 * RFC 8200 8.1).
 */
OnesComplement l4_sum(std::span<const std::byte> ip, const Layout &layout)
{
	OnesComplement sum;
	if (layout.ipv6)
		sum.add(ip.subspan(8, 32));
	else
		sum.add(ip.subspan(12, 8));
	std::size_t length = layout.end - layout.l4;
	sum.add_word(static_cast<std::uint16_t>(length >> 16));
	sum.add_word(static_cast<std::uint16_t>(length));
	sum.add_word(layout.protocol);
	sum.add(ip.subspan(layout.l4, length));
	return sum;
}

} // namespace

void OnesComplement::add(std::span<const std::byte> bytes)
{
	/*
	 * Sums of words in different byte orders are each other's byte-swapped values (RFC 1071
	 * 2(B)).
	 */
	std::uint64_t sum = 0;
	std::size_t at = 0;
	for (; at + 4 <= bytes.size(); at += 4) {
		std::uint32_t word;
		std::memcpy(&word, bytes.data() + at, 4);
		sum += word;
	}
	std::uint32_t rest = 0;
	if (at < bytes.size())
		std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
	sum += rest;
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum_ += ib::be16::from_raw(static_cast<std::uint16_t>(sum)).value();
}

std::uint16_t OnesComplement::folded() const
{
	std::uint64_t sum = sum_;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<std::uint16_t>(sum);
}

void fill_checksums(std::span<std::byte> payload, bool ip_checksum, bool l4_checksum)
{
	auto layout = lay_out(payload);
	if (!layout)
		return;
	auto ip = payload.subspan(kEncapsulationBytes);
	if (ip_checksum && !layout->ipv6) {
		put16(ip, 10, 0);
		OnesComplement sum;
		sum.add(ip.first(layout->l4));
		put16(ip, 10, static_cast<std::uint16_t>(~sum.folded()));
	}
	if (l4_checksum && layout->has_l4()) {
		std::size_t field = layout->l4 + *layout->checksum_field();
		put16(ip, field, 0);
		auto sum = static_cast<std::uint16_t>(~l4_sum(ip, *layout).folded());
		/* UDP sends 0 as ffff, because 0 means that there is no checksum (RFC 768). */
		if (sum == 0 && layout->protocol == kProtocolUdp)
			sum = 0xffff;
		put16(ip, field, sum);
	}
}

ChecksumStatus check_checksums(std::span<const std::byte> payload)
{
	ChecksumStatus result;
	auto layout = lay_out(payload);
	if (!layout)
		return result;
	auto ip = payload.subspan(kEncapsulationBytes);
	if (!layout->ipv6) {
		OnesComplement sum;
		sum.add(ip.first(layout->l4));
		if (sum.folded() != 0xffff)
			return result;
	}
	result.ipv6 = layout->ipv6;
	result.ipv4 = !layout->ipv6;
	result.ipv4_fragment = result.ipv4 && layout->fragment;
	result.ipv4_options = result.ipv4 && layout->options;
	result.ip_checksum_ok = true;
	if (layout->has_l4()) {
		bool udp = layout->protocol == kProtocolUdp;
		/* A packet without a checksum is not reported as correct. */
		bool present = !udp || get16(ip, layout->l4 + 6) != 0;
		if (present && l4_sum(ip, *layout).folded() == 0xffff) {
			result.udp = udp;
			result.tcp = !udp;
		}
	}
	return result;
}

LargeSend::LargeSend(std::span<const std::byte> header, std::uint64_t length, unsigned mss,
		     bool ip_checksum, bool l4_checksum)
    : header_(header), length_(length), mss_(mss), ip_checksum_(ip_checksum),
      l4_checksum_(l4_checksum)
{
}

std::size_t LargeSend::data_bytes() const
{
	return std::min<std::uint64_t>(mss_, length_ - sent_);
}

void LargeSend::finish(std::span<std::byte> out)
{
	std::size_t bytes = data_bytes();
	bool last = sent_ + bytes == length_;
	std::ranges::copy(header_, out.begin());

	auto ip = out.subspan(std::min(kEncapsulationBytes, out.size()));
	std::uint16_t type = out.size() >= kEncapsulationBytes ? get16(out, 0) : std::uint16_t{0};
	if (type == kEthertypeIpv4 && ip.size() >= 20) {
		put16(ip, 2, static_cast<std::uint16_t>(ip.size()));
		put16(ip, 4, static_cast<std::uint16_t>(get16(ip, 4) + index_));
	} else if (type == kEthertypeIpv6 && ip.size() >= 40) {
		put16(ip, 4, static_cast<std::uint16_t>(ip.size() - 40));
	}
	auto layout = lay_out(out);
	if (layout && layout->protocol == kProtocolTcp && layout->has_l4()) {
		auto tcp = ip.subspan(layout->l4);
		std::uint32_t sequence =
			static_cast<std::uint32_t>(get16(tcp, 4)) << 16 | get16(tcp, 6);
		sequence += static_cast<std::uint32_t>(sent_);
		put16(tcp, 4, static_cast<std::uint16_t>(sequence >> 16));
		put16(tcp, 6, static_cast<std::uint16_t>(sequence));
		constexpr std::uint8_t fin = 0x01, psh = 0x08, cwr = 0x80;
		std::uint8_t flags = get8(tcp, 13);
		if (!last)
			flags &= static_cast<std::uint8_t>(~(fin | psh));
		if (index_ != 0)
			flags &= static_cast<std::uint8_t>(~cwr);
		tcp[13] = std::byte{flags};
	}
	fill_checksums(out, ip_checksum_, l4_checksum_);

	sent_ += bytes;
	index_++;
	done_ = last;
}

} // namespace weft::hca::transport
