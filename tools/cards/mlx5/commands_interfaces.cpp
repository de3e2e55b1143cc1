// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands of enhanced IPoIB for transport interfaces (TIS, TIR), tables of receive
// queues (RQT), and counters.
#include <algorithm>
#include <utility>

#include "cards/hca/port.hpp"
#include "cards/mlx5/core.hpp"
#include "net/fabric/port.hpp"

namespace weft::mlx5
{

using hw::mlx5::CounterSet;
using hw::mlx5::HashFunction;
using hw::mlx5::RqtContext;
using hw::mlx5::Status;
using hw::mlx5::TirContext;
using hw::mlx5::TisContext;
using hw::mlx5::VportCounter;
namespace raw_command = hw::mlx5::raw_command;

namespace
{

const std::uint8_t *interface_context(const Command &command)
{
	return command.in.data() + raw_command::context;
}

std::uint32_t number_of(const Command &command)
{
	return hw::mlx5::object_number.get(command.in.data());
}

// Assigns a number to @object and returns it in the output of the command.
template<typename T>
Status insert(Numbered<T> &objects, NumberPool &numbers, T object, Command &command)
{
	const auto number = numbers.take();
	if (!number)
		return Status::exceeds_limit;
	objects.insert(*number, std::move(object));
	hw::mlx5::object_number.set(command.out.data(), *number);
	return Status::ok;
}

template<typename T>
Status remove(Numbered<T> &objects, NumberPool &numbers, std::uint32_t number)
{
	if (!objects.remove(number))
		return Status::bad_resource;
	numbers.give(number);
	return Status::ok;
}

bool has_domain(const Core &core, std::uint32_t number)
{
	return number < core.transport_domains_used.size() && core.transport_domains_used[number];
}

bool decode_rule(const std::uint8_t *context, HashRule &rule)
{
	constexpr std::uint32_t fields = TirContext::source_address |
					 TirContext::destination_address | TirContext::source_port |
					 TirContext::destination_port;
	const std::uint32_t function = TirContext::hash.get(context);
	if (function > static_cast<std::uint32_t>(HashFunction::toeplitz))
		return false;
	rule.function = static_cast<HashFunction>(function);
	rule.symmetric = TirContext::symmetric.get(context);
	rule.ipv6 = TirContext::ipv6.get(context);
	rule.udp = TirContext::udp.get(context);
	// The model does not hash other fields (the SPI of IPsec), as if they were equal in all
	// packets.
	rule.selected = TirContext::selected.get(context) & fields;
	std::copy_n(context + TirContext::key, rule.key.size(), rule.key.begin());
	return true;
}

// Reads a list of @size receive queues, each of which must exist.
Status decode_queues(const Core &core, const Command &command, std::size_t size,
		     std::vector<std::uint32_t> &out)
{
	constexpr std::size_t entry = 4;
	const auto list = command.in.subspan(raw_command::pages);
	if (list.size() < size * entry)
		return Status::bad_input_length;
	out.clear();
	for (std::size_t i = 0; i < size; ++i) {
		const std::uint32_t rqn = hw::mlx5::load_be32(list.data(), i * entry) & 0xffffff;
		if (!core.raw.receive_queues.find(rqn))
			return Status::bad_resource;
		out.push_back(rqn);
	}
	return Status::ok;
}

} // namespace

Status Commands::create_tis(Command &command)
{
	const std::uint8_t *const context = interface_context(command);
	const std::uint32_t sender = TisContext::underlay_qpn.get(context);
	if (TisContext::tls.get(context))
		return Status::bad_parameter;
	const QueuePair *const qp = core_.context.queue_pair(sender);
	if (!has_domain(core_, TisContext::transport_domain.get(context)) || !qp || !qp->steered)
		return Status::bad_resource;
	return insert(core_.raw.send_interfaces, core_.raw.tis_numbers,
		      SendInterface{.underlay_qpn = sender}, command);
}

Status Commands::destroy_tis(Command &command)
{
	return remove(core_.raw.send_interfaces, core_.raw.tis_numbers, number_of(command));
}

Status Commands::create_tir(Command &command)
{
	const std::uint8_t *const context = interface_context(command);
	const std::uint32_t kind = TirContext::kind.get(context);
	ReceiveInterface tir{.indirect = kind == TirContext::indirect,
			     .rqn = TirContext::rqn.get(context),
			     .rqt = TirContext::rqt.get(context),
			     .rule = {}};
	// The model does not merge packets (LRO).
	if (kind > TirContext::indirect || TirContext::tls.get(context) ||
	    TirContext::merge_mask.get(context) || !decode_rule(context, tir.rule))
		return Status::bad_parameter;
	if (!has_domain(core_, TirContext::transport_domain.get(context)) ||
	    (tir.indirect ? !core_.raw.tables.find(tir.rqt)
			  : !core_.raw.receive_queues.find(tir.rqn)))
		return Status::bad_resource;
	return insert(core_.raw.receive_interfaces, core_.raw.tir_numbers, tir, command);
}

// The bits that block loopback are accepted and ignored: Linux drops packets that it has sent
// itself.
Status Commands::modify_tir(Command &command)
{
	constexpr std::uint32_t possible = raw_command::tir_set_merge | raw_command::tir_set_hash |
					   raw_command::tir_set_loopback;
	ReceiveInterface *const tir = core_.raw.receive_interfaces.find(number_of(command));
	if (!tir)
		return Status::bad_resource;
	const std::uint32_t selected = raw_command::bitmask_low.get(command.in.data());
	const std::uint8_t *const context = interface_context(command);
	if (selected & ~possible ||
	    (selected & raw_command::tir_set_merge && TirContext::merge_mask.get(context)))
		return Status::bad_parameter;
	HashRule rule;
	if (selected & raw_command::tir_set_hash) {
		if (!decode_rule(context, rule))
			return Status::bad_parameter;
		tir->rule = rule;
	}
	return Status::ok;
}

Status Commands::destroy_tir(Command &command)
{
	return remove(core_.raw.receive_interfaces, core_.raw.tir_numbers, number_of(command));
}

Status Commands::create_rqt(Command &command)
{
	const std::uint8_t *const context = interface_context(command);
	QueueTable table{.most = RqtContext::most.get(context), .queues = {}};
	const std::size_t size = RqtContext::size.get(context);
	if (RqtContext::kind.get(context) || size == 0 || size > table.most ||
	    table.most > std::size_t{1} << limits::kLogQueueTableSize)
		return Status::bad_parameter;
	if (const Status status = decode_queues(core_, command, size, table.queues);
	    status != Status::ok)
		return status;
	return insert(core_.raw.tables, core_.raw.rqt_numbers, std::move(table), command);
}

Status Commands::modify_rqt(Command &command)
{
	QueueTable *const table = core_.raw.tables.find(number_of(command));
	if (!table)
		return Status::bad_resource;
	if (raw_command::bitmask_low.get(command.in.data()) != raw_command::rqt_set_list)
		return Status::bad_parameter;
	const std::size_t size = RqtContext::size.get(interface_context(command));
	if (size == 0 || size > table->most)
		return Status::bad_parameter;
	std::vector<std::uint32_t> queues;
	if (const Status status = decode_queues(core_, command, size, queues); status != Status::ok)
		return status;
	table->queues = std::move(queues);
	return Status::ok;
}

Status Commands::destroy_rqt(Command &command)
{
	return remove(core_.raw.tables, core_.raw.rqt_numbers, number_of(command));
}

Status Commands::alloc_q_counter(Command &command)
{
	const auto number = core_.raw.counter_numbers.take();
	if (!number)
		return Status::no_resources;
	core_.raw.counter_sets.insert(*number, 0);
	CounterSet::number.set(command.out.data(), *number);
	return Status::ok;
}

Status Commands::dealloc_q_counter(Command &command)
{
	return remove(core_.raw.counter_sets, core_.raw.counter_numbers,
		      CounterSet::number.get(command.in.data()));
}

// The model has one counter of a set: datagrams without a receive request.
Status Commands::query_q_counter(Command &command)
{
	const std::uint8_t *const in = command.in.data();
	std::uint32_t *const drops = core_.raw.counter_sets.find(CounterSet::queried.get(in));
	if (!drops)
		return Status::bad_resource;
	CounterSet::out_of_buffer.set(command.out.data(), *drops);
	if (CounterSet::clear.get(in))
		*drops = 0;
	return Status::ok;
}

Status Commands::query_vport_counter(Command &command)
{
	const std::uint32_t number = VportCounter::port.get(command.in.data());
	const CardPort *const port = core_.context.port(number ? number : 1);
	if (!port)
		return Status::bad_index;
	const fabric::Counters &counters = port->fabric_port().counters();
	std::uint8_t *const out = command.out.data();
	const auto put = [out](std::size_t place, std::uint64_t packets, std::uint64_t octets) {
		hw::mlx5::store_be64(out, place, packets);
		hw::mlx5::store_be64(out, place + VportCounter::octets, octets);
	};
	// The port has one counter of octets; it is reported for unicast.
	const std::uint64_t multicast_in = counters.multicast_rcv_packets;
	const std::uint64_t multicast_out = counters.multicast_xmit_packets;
	// Set(PortCounters) may set the total below the number of multicast packets.
	const std::uint64_t in = std::max<std::uint64_t>(counters.rcv_packets, multicast_in);
	const std::uint64_t sent = std::max<std::uint64_t>(counters.xmit_packets, multicast_out);
	put(VportCounter::unicast_received, in - multicast_in, 4 * counters.rcv_data);
	put(VportCounter::unicast_sent, sent - multicast_out, 4 * counters.xmit_data);
	put(VportCounter::multicast_received, multicast_in, 0);
	put(VportCounter::multicast_sent, multicast_out, 0);
	return Status::ok;
}

} // namespace weft::mlx5
