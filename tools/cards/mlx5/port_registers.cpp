// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/port_registers.hpp"

#include <algorithm>

#include <hw/mlx5/commands.hpp>

#include "cards/mlx5/core.hpp"
#include "net/fabric/port_info_rules.hpp"

namespace weft::mlx5
{

using hw::mlx5::AccessRegister;

namespace
{

// The codes of a width in PortInfo and in the register.
struct Width {
	std::uint8_t info;
	std::uint32_t code;
};
constexpr Width kWidths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 0x10}, {16, 2}};

std::uint32_t width_codes(std::uint8_t widths)
{
	std::uint32_t codes = 0;
	for (const Width &width : kWidths)
		codes |= widths & width.info ? width.code : 0;
	return codes;
}

std::uint8_t widths_of(std::uint32_t codes)
{
	std::uint8_t widths = 0;
	for (const Width &width : kWidths)
		widths |= codes & width.code ? width.info : 0;
	return widths;
}

// The first three speeds have the codes of PortInfo. The codes of the extended speeds follow that
// of FDR-10.
constexpr unsigned kExtendedShift = 4;

std::uint32_t speed_codes(std::uint32_t speeds, std::uint32_t extended)
{
	return speeds | extended << kExtendedShift;
}

void read_mtu(const CardPort &port, std::uint8_t *out)
{
	const std::uint32_t used = ib::mtu_bytes(port.mtu());
	AccessRegister::port.set(out, port.number());
	AccessRegister::mtu_most.set(out, ib::mtu_bytes(CardPort::kMaxMtu));
	AccessRegister::mtu_wanted.set(out, used);
	AccessRegister::mtu_used.set(out, used);
}

void read_speed(const CardPort &port, std::uint8_t *out)
{
	const ib::PortInfo &info = port.info();
	const fabric::EnabledRates enabled = fabric::enabled_rates(info);
	const std::uint32_t widths = width_codes(info.link_width_supported);
	const std::uint32_t speeds =
		speed_codes(info.speed_supported(), info.speed_ext_supported());
	AccessRegister::port.set(out, port.number());
	AccessRegister::speed_protocols.set(out, AccessRegister::speed_infiniband);
	AccessRegister::widths_possible.set(out, widths);
	AccessRegister::speeds_possible.set(out, speeds);
	AccessRegister::widths_wanted.set(out, widths & width_codes(enabled.widths));
	AccessRegister::speeds_wanted.set(out,
					  speeds & speed_codes(enabled.speeds, enabled.speeds_ext));
	AccessRegister::width.set(out, width_codes(info.link_width_active));
	const std::uint32_t extended = info.speed_ext_active();
	AccessRegister::speed.set(out, speed_codes(extended ? 0 : info.speed_active(), extended));
}

// Only the group of IEEE 802.3 has values; all other counters are zero.
void read_counters(const CardPort &port, std::uint32_t group, std::uint8_t *out)
{
	AccessRegister::port.set(out, port.number());
	AccessRegister::counters_group.set(out, group);
	if (group != AccessRegister::group_ieee_802_3)
		return;
	const fabric::Counters &counters = port.fabric_port().counters();
	AccessRegister::frames_sent.set(out, counters.xmit_packets);
	AccessRegister::frames_received.set(out, counters.rcv_packets);
	AccessRegister::octets_sent.set(out, 4 * counters.xmit_data);
	AccessRegister::octets_received.set(out, 4 * counters.rcv_data);
}

// Returns the size of a register, or 0 if the card does not have it.
std::size_t size_of(std::uint32_t number)
{
	switch (number) {
	case AccessRegister::port_mtu:
		return AccessRegister::mtu_size;
	case AccessRegister::port_speed:
		return AccessRegister::speed_size;
	case AccessRegister::port_counters:
		return AccessRegister::counters_size;
	default:
		return 0;
	}
}

} // namespace

PortRegister read_port_register(const Core &core, std::uint32_t number,
				std::span<std::uint8_t> data)
{
	const std::size_t size = size_of(number);
	if (size == 0)
		return PortRegister::unsupported;
	if (data.size() < size)
		return PortRegister::too_short;
	const CardPort *const port = core.context.port(AccessRegister::port.get(data.data()));
	if (!port)
		return PortRegister::bad_port;
	const std::uint32_t group = AccessRegister::counters_group.get(data.data());
	std::fill_n(data.begin(), size, std::uint8_t{0});
	switch (number) {
	case AccessRegister::port_mtu:
		read_mtu(*port, data.data());
		break;
	case AccessRegister::port_speed:
		read_speed(*port, data.data());
		break;
	default:
		read_counters(*port, group, data.data());
		break;
	}
	return PortRegister::ok;
}

PortRegister write_port_register(Core &core, std::uint32_t number,
				 std::span<const std::uint8_t> data)
{
	if (number != AccessRegister::port_speed)
		return PortRegister::unsupported;
	if (data.size() < AccessRegister::speed_size)
		return PortRegister::too_short;
	const std::uint32_t port = AccessRegister::port.get(data.data());
	if (!core.context.port(port))
		return PortRegister::bad_port;
	const std::uint32_t speeds = AccessRegister::speeds_wanted.get(data.data());
	const fabric::EnabledRates wanted{
		.widths = widths_of(AccessRegister::widths_wanted.get(data.data())),
		.speeds = static_cast<std::uint8_t>(speeds & 0x7),
		.speeds_ext = static_cast<std::uint8_t>(speeds >> kExtendedShift & 0xf)};
	const bool valid = AccessRegister::speed_protocols.get(data.data()) &
				   AccessRegister::speed_infiniband &&
			   core.enable_rates(port, wanted);
	return valid ? PortRegister::ok : PortRegister::bad_value;
}

} // namespace weft::mlx5
