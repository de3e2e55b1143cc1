// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers random MAD agents and sends random MADs from several threads on the same open file. The
// test passes if the kernel's log contains no report.
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <span>

#include "ib/mad.hpp"
#include "tests/uverbs_probe/callers.hpp"
#include "tests/uverbs_probe/program.hpp"

namespace weft::uverbs
{

namespace
{

using Random = std::mt19937_64;

constexpr unsigned kCallsOfARound = 250;
/* A file has 32 agents, so the last numbers are invalid. */
constexpr unsigned kIds = 34;
constexpr std::uint8_t kClasses[] = {0, 0x01, 0x03, 0x04, 0x07, 0x09, 0x0f, 0x32, 0x81};
constexpr std::uint8_t kMethods[] = {0x01, 0x02, 0x03, 0x05, 0x06, 0x12, 0x81, 0x92};

std::uint8_t one_of(std::span<const std::uint8_t> all, Random &random)
{
	return random() % 8 ? all[random() % all.size()] : static_cast<std::uint8_t>(random());
}

/* Returns a small number or any number. */
std::uint32_t small_or_any(Random &random, std::uint32_t small)
{
	return static_cast<std::uint32_t>(random() % 8 ? random() % small : random());
}

void add_agent(int file, Random &random)
{
	ib_user_mad_reg_req request{};

	request.qpn = static_cast<std::uint8_t>(small_or_any(random, 2));
	request.mgmt_class = one_of(kClasses, random);
	request.mgmt_class_version = static_cast<std::uint8_t>(small_or_any(random, 3));
	request.rmpp_version = static_cast<std::uint8_t>(small_or_any(random, 2));
	for (std::uint8_t &byte : request.oui)
		byte = static_cast<std::uint8_t>(random() % 3);
	if (random() % 2)
		request.method_mask[random() % 4] = static_cast<std::uint32_t>(random());
	ioctl(file, IB_USER_MAD_REGISTER_AGENT, &request);
}

void add_agent_by_the_newer(int file, Random &random)
{
	ib_user_mad_reg_req2 request{};

	request.qpn = small_or_any(random, 2);
	request.mgmt_class = one_of(kClasses, random);
	request.mgmt_class_version = static_cast<std::uint8_t>(small_or_any(random, 3));
	request.rmpp_version = static_cast<std::uint8_t>(small_or_any(random, 2));
	request.flags = small_or_any(random, 2);
	request.oui = small_or_any(random, 3);
	if (random() % 2)
		request.method_mask[random() % 2] = random();
	ioctl(file, IB_USER_MAD_REGISTER_AGENT2, &request);
}

/* Returns a number of bytes to write: a whole MAD, an end within the headers, or any. */
std::size_t some_size(Random &random, std::size_t whole, std::size_t most)
{
	constexpr std::size_t headers = 64;

	if (random() % 4)
		return whole;
	return random() % 2 ? sizeof(ib_user_mad_hdr) + random() % headers : random() % most;
}

/*
 * Writes a MAD that may be invalid, addressed to this node, to a neighbour, or to no node.
 * @path_mask: the bits that the path bits may have
 */
void write_mad(int file, Random &random, unsigned path_mask)
{
	constexpr std::uint16_t lids[] = {0xffff, 0xffff, 1, 2, 3, 0xbff0, 0};
	struct {
		ib_user_mad_hdr header;
		union {
			ib::Mad mad;
			std::uint8_t bytes[2048];
		};
	} record{};

	record.header.id = small_or_any(random, kIds);
	record.header.timeout_ms = random() % 4 ? static_cast<std::uint32_t>(random() % 3) * 20
						: static_cast<std::uint32_t>(random());
	record.header.retries = small_or_any(random, 3);
	record.header.qpn = ib::be32(small_or_any(random, 2));
	record.header.qkey = ib::be32(0x80010000);
	record.header.lid = ib::be16(lids[random() % std::size(lids)]);
	record.header.sl = static_cast<std::uint8_t>(small_or_any(random, 16));
	record.header.path_bits = static_cast<std::uint8_t>(small_or_any(random, 2) & path_mask);
	record.header.grh_present = random() % 4 == 0;
	record.header.gid_index = static_cast<std::uint8_t>(small_or_any(random, 3));
	record.header.pkey_index = static_cast<std::uint16_t>(small_or_any(random, 3));
	if (random() % 4 == 0)
		for (std::uint8_t &byte : record.bytes)
			byte = static_cast<std::uint8_t>(random());
	ib::MadHeader &header = record.mad.header;
	header.base_version = static_cast<std::uint8_t>(random() % 8 ? 1 : random());
	header.mgmt_class = one_of(kClasses, random);
	header.class_version = static_cast<std::uint8_t>(small_or_any(random, 3));
	header.method = one_of(kMethods, random);
	header.hop_cnt = static_cast<std::uint8_t>(small_or_any(random, 3));
	header.tid = random() % 64;
	header.attr_id = static_cast<std::uint16_t>(small_or_any(random, 0x40));
	/* These bytes are the RMPP version, type, status and flags. */
	if (random() % 2)
		for (unsigned i = 0; i < 4; i++)
			record.mad.data[i] = static_cast<std::uint8_t>(small_or_any(random, 8));
	/* DrSLID and DrDLID: by LID at neither end. */
	if (header.mgmt_class == 0x81)
		std::memset(record.bytes + 32, 0xff, 4);

	const std::size_t size =
		some_size(random, sizeof(record.header) + sizeof(ib::Mad), sizeof(record));
	if (::write(file, &record, size) < 0)
		return;
}

void read_mad(int file, Random &random)
{
	std::array<std::uint8_t, 2048> room;
	const std::size_t size =
		random() % 4 ? sizeof(ib_user_mad_hdr) + sizeof(ib::Mad) : random() % room.size();

	if (::read(file, room.data(), size) < 0)
		return;
}

void call(int file, Random &random, unsigned path_mask)
{
	pollfd waiting = {.fd = file, .events = POLLIN | POLLOUT, .revents = 0};
	std::uint32_t id = small_or_any(random, kIds);

	switch (random() % 16) {
	case 0:
		add_agent(file, random);
		break;
	case 1:
		add_agent_by_the_newer(file, random);
		break;
	case 2:
		ioctl(file, IB_USER_MAD_UNREGISTER_AGENT, &id);
		break;
	case 3:
		ioctl(file, IB_USER_MAD_ENABLE_PKEY);
		break;
	case 4:
		ioctl(file, random(), random() % 2 ? &id : nullptr);
		break;
	case 5:
		::poll(&waiting, 1, 0);
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		read_mad(file, random);
		break;
	default:
		write_mad(file, random, path_mask);
	}
}

/*
 * Writes a MAD of a class with RMPP, which is active in half of the MADs. The MAD has at least the
 * bytes up to the end of the RMPP header, and ends within the class's own header or just behind it.
 */
void write_short_mad(int file, Random &random, std::uint32_t agent)
{
	/* SubnAdm, DevMgt, DevAdm, BIS and a vendor's class: their headers have different sizes. */
	constexpr std::uint8_t classes[] = {0x03, 0x06, 0x10, 0x12, 0x32};
	constexpr std::size_t rmpp_headers = 36, longest_header = 64, version = 0, type = 1,
			      flags = 2;
	struct {
		ib_user_mad_hdr header;
		ib::Mad mad;
	} record{};

	record.header.id = agent;
	record.header.timeout_ms = static_cast<std::uint32_t>(random() % 3) * 20;
	record.header.retries = random() % 3;
	record.header.qpn = ib::be32(1);
	record.header.qkey = ib::be32(0x80010000);
	record.header.lid = ib::be16(static_cast<std::uint16_t>(1 + random() % 3));
	record.mad.header.base_version = 1;
	record.mad.header.mgmt_class = classes[random() % std::size(classes)];
	record.mad.header.class_version = 1;
	record.mad.header.method = one_of(kMethods, random);
	record.mad.header.tid = random();
	record.mad.data[version] = record.mad.data[type] = 1;
	record.mad.data[flags] = random() % 2;
	const std::size_t size = sizeof(record.header) + rmpp_headers +
				 random() % (longest_header + 2 - rmpp_headers);
	if (::write(file, &record, size) < 0)
		return;
}

} // namespace

void try_short_mads(std::uint64_t seed, unsigned long count)
{
	const Descriptor file(open(kUmadNode, O_RDWR | O_NONBLOCK));
	ib_user_mad_reg_req request{};
	Random random(seed);

	expect("open of umad0", file.number() < 0, 0);
	expect("ENABLE_PKEY", error_of(ioctl(file.number(), IB_USER_MAD_ENABLE_PKEY)), 0);
	request.qpn = request.rmpp_version = 1;
	expect("REGISTER_AGENT",
	       error_of(ioctl(file.number(), IB_USER_MAD_REGISTER_AGENT, &request)), 0);
	for (; count; count--) {
		write_short_mad(file.number(), random, request.id);
		read_mad(file.number(), random);
	}
}

void try_random_mads(std::uint64_t seed, unsigned long count, unsigned path_mask)
{
	Descriptor file;

	call_from_threads(
		seed, count / (kCallers * kCallsOfARound), kCallsOfARound,
		[&] {
			file = Descriptor(open(kUmadNode, O_RDWR | O_NONBLOCK));
			expect("open of umad0", file.number() < 0, 0);
		},
		[&](Random &random) { call(file.number(), random, path_mask); },
		[&] { file.reset(); });
}

} // namespace weft::uverbs
