// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "headers.hpp"

namespace packet
{

namespace
{

using ib::OpcodeTraits;

/* Writes consecutive wire structures. */
class Writer
{
public:
	explicit Writer(std::uint8_t *out) : at_(out) {}

	template<class Header>
	void put(const Header &header)
	{
		static_assert(alignof(Header) == 1);
		__builtin_memcpy(at_, &header, sizeof(Header));
		at_ += sizeof(Header);
	}

private:
	std::uint8_t *at_;
};

/* Reads consecutive wire structures. The caller has checked the length. */
class Reader
{
public:
	explicit Reader(const std::uint8_t *data) : at_(data) {}

	template<class Header>
	void take(Header &header)
	{
		static_assert(alignof(Header) == 1);
		__builtin_memcpy(&header, at_, sizeof(Header));
		at_ += sizeof(Header);
	}

private:
	const std::uint8_t *at_;
};

/*
 * Calls the visitor for the extension headers in the order of IBA 9.2.1 (figure 77). build() and
 * parse() both use it.
 */
template<class Visitor, class SomeHeaders>
void visit_extensions(OpcodeTraits traits, SomeHeaders &h, Visitor visit)
{
	if (traits.has(OpcodeTraits::deth))
		visit(h.deth);
	if (traits.has(OpcodeTraits::xrceth))
		visit(h.xrceth);
	if (traits.has(OpcodeTraits::reth))
		visit(h.reth);
	if (traits.has(OpcodeTraits::atomic_eth) || traits.has(OpcodeTraits::masked_atomic_eth))
		visit(h.atomic);
	if (traits.has(OpcodeTraits::masked_atomic_eth)) {
		visit(h.swap_or_add_mask);
		visit(h.compare_mask);
	}
	if (traits.has(OpcodeTraits::aeth))
		visit(h.aeth);
	if (traits.has(OpcodeTraits::atomic_ack_eth))
		visit(h.atomic_ack);
	if (traits.has(OpcodeTraits::immdt))
		visit(h.immdt);
	if (traits.has(OpcodeTraits::ieth))
		visit(h.ieth);
}

constexpr unsigned base_bytes(bool has_grh)
{
	return sizeof(ib::Lrh) + (has_grh ? sizeof(ib::Grh) : 0) + sizeof(ib::Bth);
}

} // namespace

const char *error_name(Error error)
{
	switch (error) {
	case Error::none:
		return "no error";
	case Error::truncated:
		return "truncated headers";
	case Error::bad_link_version:
		return "bad LRH version";
	case Error::not_transport:
		return "raw packet";
	case Error::bad_link_length:
		return "LRH length differs from the packet's";
	case Error::bad_ip_version:
		return "bad GRH version";
	case Error::bad_next_header:
		return "bad GRH next header";
	case Error::bad_global_length:
		return "GRH length differs from the packet's";
	case Error::bad_transport_version:
		return "bad BTH version";
	case Error::bad_opcode:
		return "unknown opcode";
	case Error::bad_pad:
		return "bad pad count";
	case Error::bad_payload_length:
		return "bad payload length";
	case Error::no_space:
		return "no space for the headers";
	}
	return "unknown error";
}

unsigned header_bytes(const Headers &headers)
{
	OpcodeTraits traits = ib::opcode_traits(headers.bth.opcode);
	if (!traits.has(OpcodeTraits::valid))
		return 0;
	return base_bytes(headers.has_grh) + traits.extension_bytes();
}

Error build(const Headers &headers, unsigned payload_bytes, std::uint8_t *out, unsigned capacity,
	    unsigned *written)
{
	OpcodeTraits traits = ib::opcode_traits(headers.bth.opcode);
	if (!traits.has(OpcodeTraits::valid))
		return Error::bad_opcode;
	if (payload_bytes > ib::payload_max ||
	    (payload_bytes != 0 && !traits.has(OpcodeTraits::payload)))
		return Error::bad_payload_length;
	unsigned size = header_bytes(headers);
	if (size > capacity)
		return Error::no_space;

	unsigned pad = -payload_bytes & 3;
	unsigned packet_bytes = size + payload_bytes + pad + ib::icrc_bytes;

	ib::Lrh lrh = headers.lrh;
	lrh.vl_lver = ib::field_set<3, 0>(lrh.vl_lver, 0);
	lrh.set_lnh(headers.has_grh ? ib::Lnh::global : ib::Lnh::local);
	lrh.set_length(packet_bytes / 4);
	Writer writer(out);
	writer.put(lrh);
	if (headers.has_grh) {
		ib::Grh grh = headers.grh;
		grh.set_version(ib::Grh::ip_version);
		grh.next_header = ib::Grh::next_header_bth;
		grh.payload_length = static_cast<std::uint16_t>(packet_bytes - sizeof(ib::Lrh) -
								sizeof(ib::Grh));
		writer.put(grh);
	}
	ib::Bth bth = headers.bth;
	bth.set_pad(pad);
	bth.flags = ib::field_set<3, 0>(bth.flags, 0);
	writer.put(bth);
	visit_extensions(traits, headers, [&](const auto &header) { writer.put(header); });
	*written = size;
	return Error::none;
}

Error parse(const std::uint8_t *data, unsigned size, unsigned packet_bytes, Headers &headers,
	    Layout &layout)
{
	headers = Headers{};
	if (size < base_bytes(false))
		return Error::truncated;
	Reader reader(data);
	reader.take(headers.lrh);
	if (headers.lrh.lver() != 0)
		return Error::bad_link_version;
	ib::Lnh lnh = headers.lrh.lnh();
	if (lnh != ib::Lnh::local && lnh != ib::Lnh::global)
		return Error::not_transport;
	headers.has_grh = lnh == ib::Lnh::global;
	if (size < base_bytes(headers.has_grh))
		return Error::truncated;
	if (headers.lrh.length() * 4u != packet_bytes)
		return Error::bad_link_length;
	if (headers.has_grh) {
		reader.take(headers.grh);
		if (headers.grh.version() != ib::Grh::ip_version)
			return Error::bad_ip_version;
		if (headers.grh.next_header != ib::Grh::next_header_bth)
			return Error::bad_next_header;
		if (headers.grh.payload_length + sizeof(ib::Lrh) + sizeof(ib::Grh) != packet_bytes)
			return Error::bad_global_length;
	}
	reader.take(headers.bth);
	if (headers.bth.tver() != 0)
		return Error::bad_transport_version;
	OpcodeTraits traits = ib::opcode_traits(headers.bth.opcode);
	if (!traits.has(OpcodeTraits::valid))
		return Error::bad_opcode;
	unsigned bytes = header_bytes(headers);
	if (size < bytes || packet_bytes < bytes + ib::icrc_bytes)
		return Error::truncated;
	visit_extensions(traits, headers, [&](auto &header) { reader.take(header); });

	unsigned padded = packet_bytes - bytes - ib::icrc_bytes;
	unsigned pad = headers.bth.pad();
	if (pad > padded)
		return Error::bad_pad;
	if (padded - pad > ib::payload_max || (padded != 0 && !traits.has(OpcodeTraits::payload)))
		return Error::bad_payload_length;
	layout = {bytes, padded - pad, pad};
	return Error::none;
}

} // namespace packet
