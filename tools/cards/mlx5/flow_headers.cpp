// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/flow_headers.hpp"

#include <algorithm>
#include <cstring>

#include "cards/hca/transport/ip_offload.hpp"

namespace weft::mlx5
{

using hw::mlx5::Cqe;
using hw::mlx5::FlowHeaders;
using hw::mlx5::HashFunction;
using hw::mlx5::TirContext;

namespace
{

constexpr std::size_t kEncapsulation = 4;
constexpr std::uint32_t kEthertypeIpv4 = 0x0800;
constexpr std::uint32_t kEthertypeIpv6 = 0x86dd;
constexpr std::size_t kIpv4Header = 20;
constexpr std::size_t kIpv6Header = 40;
constexpr std::uint32_t kTcp = 6;
constexpr std::uint32_t kUdp = 17;
constexpr std::uint32_t kIpv6Fragment = 44;
// Mask of the fragment offset and the flag "more fragments".
constexpr std::uint32_t kIpv4Fragment = 0x3fff;
// Offset of the word that has the flags in its lower nine bits.
constexpr std::size_t kTcpFlags = 12;

// Input of a hash: two addresses and two ports.
constexpr std::size_t kMostInput = 2 * FlowHeaders::address_size + 4;

// Reads big-endian integers of a packet; bytes after its end are 0.
class Reader
{
public:
	explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

	std::uint32_t byte(std::size_t at) const
	{
		return at < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[at]) : 0;
	}
	std::uint32_t word(std::size_t at) const { return byte(at) << 8 | byte(at + 1); }
	bool holds(std::size_t size) const { return bytes_.size() >= size; }
	Reader from(std::size_t at) const
	{
		return Reader(bytes_.subspan(std::min(at, bytes_.size())));
	}
	void copy(std::size_t at, std::uint8_t *out, std::size_t size) const
	{
		std::memcpy(out, bytes_.data() + at, size);
	}

private:
	std::span<const std::byte> bytes_;
};

void read_ports(const Reader &header, std::uint32_t protocol, std::uint8_t *out)
{
	if (protocol == kTcp && header.holds(kTcpFlags + 2)) {
		FlowHeaders::tcp_source.set(out, header.word(0));
		FlowHeaders::tcp_destination.set(out, header.word(2));
		FlowHeaders::tcp_flags.set(out, header.word(kTcpFlags) & 0x1ff);
	} else if (protocol == kUdp && header.holds(4)) {
		FlowHeaders::udp_source.set(out, header.word(0));
		FlowHeaders::udp_destination.set(out, header.word(2));
	}
}

void read_ipv4(const Reader &header, std::uint8_t *out)
{
	constexpr std::size_t size = 4;
	constexpr std::size_t last = FlowHeaders::address_size - size;
	const std::uint32_t words = header.byte(0) & 0xf;
	const std::uint32_t protocol = header.byte(9);
	const bool fragment = header.word(6) & kIpv4Fragment;
	FlowHeaders::ip_version.set(out, 4);
	FlowHeaders::ip_header_words.set(out, words);
	FlowHeaders::dscp.set(out, header.byte(1) >> 2);
	FlowHeaders::ecn.set(out, header.byte(1) & 3);
	FlowHeaders::fragment.set(out, fragment);
	FlowHeaders::hop_limit.set(out, header.byte(8));
	FlowHeaders::protocol.set(out, protocol);
	header.copy(12, out + FlowHeaders::source + last, size);
	header.copy(16, out + FlowHeaders::destination + last, size);
	if (!fragment && words * 4 >= kIpv4Header)
		read_ports(header.from(std::size_t{words} * 4), protocol, out);
}

// The model does not parse extension headers: the type of the first one is the protocol.
void read_ipv6(const Reader &header, std::uint8_t *out)
{
	const std::uint32_t traffic_class = header.word(0) >> 4 & 0xff;
	const std::uint32_t protocol = header.byte(6);
	FlowHeaders::ip_version.set(out, 6);
	FlowHeaders::dscp.set(out, traffic_class >> 2);
	FlowHeaders::ecn.set(out, traffic_class & 3);
	FlowHeaders::fragment.set(out, protocol == kIpv6Fragment);
	FlowHeaders::hop_limit.set(out, header.byte(7));
	FlowHeaders::protocol.set(out, protocol);
	header.copy(8, out + FlowHeaders::source, FlowHeaders::address_size);
	header.copy(24, out + FlowHeaders::destination, FlowHeaders::address_size);
	read_ports(header.from(kIpv6Header), protocol, out);
}

// The selected fields of a packet, concatenated.
struct Input {
	std::array<std::uint8_t, kMostInput> bytes{};
	std::size_t size = 0;

	void add(const std::uint8_t *from, std::size_t count)
	{
		std::memcpy(bytes.data() + size, from, count);
		size += count;
	}
};

// Adds a field of the source and of the destination, @size bytes each. A symmetric hash of both
// takes the smaller one first.
void add_ends(const HashRule &rule, std::uint32_t source_bit, std::uint32_t destination_bit,
	      const std::uint8_t *source, const std::uint8_t *destination, std::size_t size,
	      Input &out)
{
	const bool both = rule.selected & source_bit && rule.selected & destination_bit;
	if (rule.symmetric && both && std::memcmp(source, destination, size) > 0)
		std::swap(source, destination);
	if (rule.selected & source_bit)
		out.add(source, size);
	if (rule.selected & destination_bit)
		out.add(destination, size);
}

std::uint32_t toeplitz(const HashRule &rule, const Input &input)
{
	std::uint32_t result = 0;
	// 32 bits of the key, starting at the position of the current input bit.
	std::uint32_t window = hw::mlx5::load_be32(rule.key.data(), 0);
	for (std::size_t at = 0; at < input.size; ++at)
		for (unsigned bit = 0; bit < 8; ++bit) {
			if (input.bytes[at] & 0x80 >> bit)
				result ^= window;
			const std::uint32_t next = rule.key[at + 4] >> (7 - bit) & 1;
			window = window << 1 | next;
		}
	return result;
}

std::uint32_t inverted_xor8(const Input &input)
{
	std::uint8_t result = 0;
	for (std::size_t at = 0; at < input.size; ++at)
		result = static_cast<std::uint8_t>(result ^ input.bytes[at]);
	std::uint8_t inverted = 0;
	for (unsigned bit = 0; bit < 8; ++bit)
		inverted = static_cast<std::uint8_t>(inverted << 1 | (result >> bit & 1));
	return inverted;
}

} // namespace

FlowHeaders read_headers(std::span<const std::byte> payload)
{
	FlowHeaders headers{};
	const Reader packet(payload);
	if (!packet.holds(kEncapsulation))
		return headers;
	const std::uint32_t ethertype = packet.word(0);
	FlowHeaders::ethertype.set(headers.bytes, ethertype);
	const Reader ip = packet.from(kEncapsulation);
	const std::uint32_t version = ip.byte(0) >> 4;
	if (ethertype == kEthertypeIpv4 && version == 4 && ip.holds(kIpv4Header))
		read_ipv4(ip, headers.bytes);
	else if (ethertype == kEthertypeIpv6 && version == 6 && ip.holds(kIpv6Header))
		read_ipv6(ip, headers.bytes);
	return headers;
}

Hash hash(const HashRule &rule, const FlowHeaders &headers)
{
	const std::uint8_t *const from = headers.bytes;
	const std::uint32_t version = FlowHeaders::ip_version.get(from);
	if (rule.function == HashFunction::none || rule.selected == 0 ||
	    version != (rule.ipv6 ? 6u : 4u))
		return {};
	Hash out;
	Input input;
	const std::size_t size = rule.ipv6 ? FlowHeaders::address_size : 4;
	const std::size_t skip = FlowHeaders::address_size - size;
	add_ends(rule, TirContext::source_address, TirContext::destination_address,
		 from + FlowHeaders::source + skip, from + FlowHeaders::destination + skip, size,
		 input);
	out.kind = static_cast<std::uint8_t>(rule.ipv6 ? Cqe::hash_ipv6 : Cqe::hash_ipv4);
	constexpr std::uint32_t ports = TirContext::source_port | TirContext::destination_port;
	const bool right = FlowHeaders::protocol.get(from) == (rule.udp ? kUdp : kTcp) &&
			   !FlowHeaders::fragment.get(from);
	if (rule.selected & ports && right) {
		std::array<std::uint8_t, 4> both{};
		hw::mlx5::store_be32(both.data(), 0,
				     rule.udp ? FlowHeaders::udp_source.get(from) << 16 |
							FlowHeaders::udp_destination.get(from)
					      : FlowHeaders::tcp_source.get(from) << 16 |
							FlowHeaders::tcp_destination.get(from));
		add_ends(rule, TirContext::source_port, TirContext::destination_port, both.data(),
			 both.data() + 2, 2, input);
		out.kind |= static_cast<std::uint8_t>(rule.udp ? Cqe::hash_udp : Cqe::hash_tcp);
	}
	out.value = rule.function == HashFunction::toeplitz ? toeplitz(rule, input)
							    : inverted_xor8(input);
	return out;
}

std::uint16_t sum_of(std::span<const std::byte> payload)
{
	hca::transport::OnesComplement sum;
	if (payload.size() > kEncapsulation)
		sum.add(payload.subspan(kEncapsulation));
	return sum.folded();
}

} // namespace weft::mlx5
