// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vfio-user/testing/fake_client.hpp"

#include <system_error>

namespace weft::testing
{

using namespace vfio_user;

void FakeClient::send(Command command, const Bytes &payload, const std::vector<int> &fds,
		      std::uint32_t flags)
{
	const auto size = static_cast<std::uint32_t>(sizeof(Header) + payload.size());
	const Header header{next_id_++, static_cast<std::uint16_t>(command), size, flags, 0};
	send_raw(bytes_of(header, payload), fds);
}

FakeClient::Reply FakeClient::receive()
{
	Reply reply{};
	reply.header = receive_as<Header>();
	if (reply.header.size < sizeof(Header) || reply.header.size > kMaxMessage)
		throw std::runtime_error("a reply of impossible size");
	reply.payload.resize(reply.header.size - sizeof(Header));
	receive_raw(reply.payload);
	const bool error = reply.header.flags & kFlagError;
	if (error != (reply.header.error != 0) || (error && !reply.payload.empty()))
		throw std::runtime_error("an error reply that is not well-formed");
	return reply;
}

FakeClient::Reply FakeClient::call(Command command, const Bytes &payload,
				   const std::vector<int> &fds)
{
	const auto id = next_id_;
	send(command, payload, fds);
	auto reply = receive();
	if (reply.header.id != id || reply.header.command != static_cast<std::uint16_t>(command) ||
	    (reply.header.flags & ~kFlagError) != kFlagTypeReply)
		throw std::runtime_error("a reply that is not to this request");
	return reply;
}

FakeClient::Reply FakeClient::greet()
{
	return call(Command::version,
		    bytes_of(VersionHeader{0, 1},
			     R"({"capabilities": {"max_msg_fds": 8, "max_data_xfer_size": 1048576,)"
			     R"( "pgsizes": 4096, "max_dma_maps": 65535,)"
			     R"( "write_multiple": true}})"));
}

void FakeClient::must(const Reply &reply, const char *what)
{
	if (reply.error())
		throw std::system_error(static_cast<int>(reply.error()), std::generic_category(),
					what);
}

void FakeClient::map(std::uint64_t address, std::uint64_t size, int fd, std::uint64_t offset,
		     std::uint32_t flags)
{
	const DmaMap section{sizeof(DmaMap), flags, offset, address, size};
	must(call(Command::dma_map, bytes_of(section),
		  fd < 0 ? std::vector<int>{} : std::vector<int>{fd}),
	     "DMA_MAP");
}

Bytes FakeClient::read(std::uint32_t region, std::uint64_t offset, std::uint32_t count)
{
	const RegionAccess access{offset, region, count};
	auto reply = call(Command::region_read, bytes_of(access));
	must(reply, "REGION_READ");
	if (reply.payload.size() != sizeof(RegionAccess) + count)
		throw std::runtime_error("a REGION_READ reply of the wrong size");
	reply.payload.erase(reply.payload.begin(), reply.payload.begin() + sizeof(RegionAccess));
	return reply.payload;
}

void FakeClient::write(std::uint32_t region, std::uint64_t offset, const Bytes &data)
{
	const RegionAccess access{offset, region, static_cast<std::uint32_t>(data.size())};
	must(call(Command::region_write, bytes_of(access, data)), "REGION_WRITE");
}

} // namespace weft::testing
