// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a minimal driver of the RNIC for tests, with the card and the simulated guest in which
// the driver runs. Several of these can share one thread (reactor).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <hw/amso1100/events.hpp>
#include <hw/amso1100/registers.hpp>
#include <hw/amso1100/work.hpp>

#include "cards/amso1100/bytes.hpp"
#include "cards/model.hpp"
#include "net/ethernet/channel.hpp"
#include "bus/pci/testing/fake_host.hpp"

namespace weft::amso1100::testing
{

namespace wire = hw::amso1100;
using wire::MessageId;
using wire::Status;

class Driver
{
public:
	// These words are in host memory and not aligned to four bytes, as in old drivers.
	static constexpr std::uint64_t kHintCount = 0x2001a, kRequestWord = 0x2001c,
				       kReplyWord = 0x2001e, kEventWord = 0x20020;
	static constexpr std::uint64_t kReplies = 0x30000, kEvents = 0x40000;
	static constexpr std::uint64_t kFree = 0x100000; // free memory starts here
	static constexpr std::uint64_t kMemory = 16 << 20;
	static constexpr std::uint64_t kContext = 0x80563412808800ff;
	static constexpr std::uint64_t kRnicContext = 0x1100000022;
	static constexpr std::uint32_t kMask = 0xffffff00;

	Driver(Reactor &reactor, std::uint64_t guid, std::shared_ptr<ethernet::Channel> channel)
	    : host(reactor, kMemory)
	{
		const cards::Model *model = cards::find_model("amso1100");
		if (!model)
			throw std::logic_error("nobody has registered the model");
		card = model->make({.name = "node",
				    .guid = guid,
				    .ports = {},
				    .ethernet = std::move(channel),
				    .flags = {}},
				   &host.loop());
		host.plug(*card->function());
		host.set_msix_enabled(false); // use INTx
		start();
	}
	~Driver() { host.unplug(); }

	// Enables interrupts and reads the addresses of the queues, as a driver does first.
	void start()
	{
		host.write<std::uint32_t>(0, wire::reg::idis, 0);
		shared = wire::page_base + page(wire::page::q0_shared);
		requests = wire::page_base + page(wire::page::q0_pool_start);
		reply_shared = wire::page_base + page(wire::page::q1_shared);
		event_shared = wire::page_base + page(wire::page::q2_shared);
		for (const std::uint64_t each : {kHintCount, kRequestWord, kReplyWord, kEventWord})
			put_word(each, 0x0100);
		produced = events_read = 0;
		next_free_ = kFree;
	}

	template<typename T>
	void put(std::uint64_t offset, T value)
	{
		std::array<std::byte, sizeof(T)> bytes;
		store_be<T>(bytes, 0, value);
		host.write_register(4, offset, bytes);
	}
	template<typename T>
	T get(std::uint64_t offset)
	{
		std::array<std::byte, sizeof(T)> bytes;
		host.read_register(4, offset, bytes);
		return load_be<T>(bytes);
	}
	std::uint32_t page(std::size_t offset)
	{
		return get<std::uint32_t>(wire::page_base + offset);
	}
	std::uint16_t word(std::uint64_t address)
	{
		return load_be<std::uint16_t>(host.memory(address, 2));
	}
	void put_word(std::uint64_t address, std::uint16_t value)
	{
		store_be<std::uint16_t>(host.memory(address, 2), 0, value);
	}
	std::uint64_t allocate(std::uint64_t size)
	{
		const std::uint64_t at = next_free_;
		next_free_ += (size + 4095) / 4096 * 4096;
		if (next_free_ > kMemory)
			throw std::bad_alloc();
		return at;
	}

	using Words = std::vector<std::pair<std::size_t, std::uint32_t>>;
	// Writes a request with these words into its slot without notifying the card. All other
	// bytes are garbage.
	void fill(MessageId id, const Words &words = {}, std::uint64_t context = kContext,
		  std::span<const std::byte> tail = {}, std::size_t tail_at = 0)
	{
		std::array<std::byte, wire::message_size> message;
		message.fill(std::byte{0xee});
		message[wire::header::id] = static_cast<std::byte>(id);
		store_be<std::uint64_t>(message, wire::header::context, context);
		for (const auto &[offset, value] : words)
			store_be<std::uint32_t>(message, offset, value);
		std::ranges::copy(tail, message.begin() + static_cast<std::ptrdiff_t>(tail_at));
		host.write_register(4, requests + produced * wire::message_size, message);
		produced = static_cast<std::uint16_t>((produced + 1) % wire::request_entries);
	}
	void ring() { put<std::uint16_t>(shared + wire::shared::index, produced); }
	bool taken() { return word(kRequestWord) == produced; }
	bool until(const std::function<bool()> &done,
		   Clock::duration time = std::chrono::minutes(20))
	{
		return host.loop().run_until(done, time);
	}
	void must(bool condition)
	{
		if (!condition)
			throw std::runtime_error("the card has not answered");
	}
	static Words address_words(std::size_t at, std::uint64_t value)
	{
		return {{at, static_cast<std::uint32_t>(value >> 32)},
			{at + 4, static_cast<std::uint32_t>(value)}};
	}
	void initialise()
	{
		Words words;
		const std::pair<std::size_t, std::uint64_t> where[] = {
			{wire::init::hint_count, kHintCount},
			{wire::init::request_word, kRequestWord},
			{wire::init::reply_word, kReplyWord},
			{wire::init::reply_pool, kReplies},
			{wire::init::event_word, kEventWord},
			{wire::init::event_pool, kEvents}};
		for (const auto &[at, value] : where)
			std::ranges::copy(address_words(at, value), std::back_inserter(words));
		fill(MessageId::init, words, 0);
		ring();
		must(until([&] { return taken(); }));
	}
	// Sends a request and returns the slot of its reply.
	std::span<std::byte> ask(MessageId id, const Words &words = {},
				 std::span<const std::byte> tail = {}, std::size_t tail_at = 0)
	{
		const std::uint16_t before = word(kReplyWord);
		fill(id, words, kContext, tail, tail_at);
		ring();
		must(until([&] { return word(kReplyWord) != before; }));
		return reply(before);
	}
	std::span<std::byte> reply(std::uint16_t index)
	{
		put<std::uint16_t>(reply_shared + wire::shared::index,
				   static_cast<std::uint16_t>((index + 1) % wire::reply_entries));
		return host.memory(kReplies + index * wire::message_size, wire::message_size);
	}
	static Status result(std::span<const std::byte> message)
	{
		return static_cast<Status>(message[wire::header::result]);
	}
	std::uint32_t open()
	{
		const auto answer =
			ask(MessageId::rnic_open, {{0x10, 0x11}, {0x14, 0x22}, {0x18, 0x800000}});
		must(result(answer) == Status::ok);
		return rnic = load_be<std::uint32_t>(answer, wire::rnic_open::reply_handle);
	}
	Status configure(std::uint32_t handle, std::uint32_t option, std::uint32_t address)
	{
		return result(
			ask(MessageId::rnic_setconfig,
			    {{0x10, handle}, {0x14, option}, {0x18, address}, {0x1c, kMask}}));
	}
	void bring_up(std::uint32_t address)
	{
		initialise();
		must(configure(open(), 1, address) == Status::ok);
	}

	/* --- verbs --- */

	struct Cq {
		std::uint32_t handle, index, depth;
		std::uint64_t shared, pool, word;
		std::uint16_t consumed = 0;
	};
	static Words cq_words(std::uint32_t rnic_handle, std::uint64_t producer, std::uint64_t pool,
			      std::uint32_t depth)
	{
		namespace field = wire::cq_create;
		Words words{{field::rnic_handle, rnic_handle},
			    {field::slot_size, wire::completion_slot_size},
			    {field::depth, depth},
			    {field::user_context, 0xcc},
			    {field::user_context + 4, depth}};
		std::ranges::copy(address_words(field::producer_word, producer),
				  std::back_inserter(words));
		std::ranges::copy(address_words(field::pool, pool), std::back_inserter(words));
		return words;
	}
	Cq create_cq(std::uint32_t depth = 64)
	{
		namespace field = wire::cq_create;
		const std::uint64_t producer = allocate(2);
		const std::uint64_t pool = allocate(depth * wire::completion_slot_size);
		put_word(producer, 0x0500);
		const auto answer =
			ask(MessageId::cq_create, cq_words(rnic, producer, pool, depth));
		must(result(answer) == Status::ok);
		return {.handle = load_be<std::uint32_t>(answer, field::reply_handle),
			.index = load_be<std::uint32_t>(answer, field::reply_index),
			.depth = depth,
			.shared = wire::page_base +
				  load_be<std::uint32_t>(answer, field::reply_shared),
			.pool = pool,
			.word = producer};
	}
	struct Completion {
		std::uint32_t silent;
		wire::WorkId id;
		Status result;
		std::uint64_t context, qp_context;
		std::uint32_t bytes, stag;
	};
	std::optional<Completion> poll(Cq &cq)
	{
		if (word(cq.word) == cq.consumed)
			return std::nullopt;
		const auto entry = host.memory(cq.pool + cq.consumed * wire::completion_slot_size,
					       wire::completion::size);
		cq.consumed = static_cast<std::uint16_t>((cq.consumed + 1) % cq.depth);
		put<std::uint16_t>(cq.shared + wire::shared::index, cq.consumed);
		return Completion{
			.silent = load_be<std::uint32_t>(entry, wire::work::silent_count),
			.id = static_cast<wire::WorkId>(entry[wire::header::id]),
			.result = result(entry),
			.context = load_be<std::uint64_t>(entry, wire::header::context),
			.qp_context = load_be<std::uint64_t>(entry, wire::completion::qp_context),
			.bytes = load_be<std::uint32_t>(entry, wire::completion::bytes),
			.stag = load_be<std::uint32_t>(entry, wire::completion::stag)};
	}
	Completion wait(Cq &cq)
	{
		std::optional<Completion> completion;
		must(until([&] { return (completion = poll(cq)).has_value(); }));
		return *completion;
	}
	void arm(const Cq &cq, wire::Notification what)
	{
		put<std::uint8_t>(cq.shared + wire::shared::notification,
				  static_cast<std::uint8_t>(what));
		put<std::uint8_t>(cq.shared + wire::shared::armed,
				  wire::armed_yes | wire::armed_wait);
	}
	// Returns the queues to which hints refer, except the fixed ones.
	std::vector<std::uint32_t> hints()
	{
		std::vector<std::uint32_t> all;
		for (std::uint32_t hint;
		     (hint = host.read<std::uint32_t>(0, wire::reg::host_hint)) != wire::hint_none;)
			if (hint >= wire::least_queue_index)
				all.push_back(hint);
		return all;
	}

	static constexpr std::uint32_t kPd = 0x07000000;
	static constexpr std::uint32_t kAllFlags = 0x2f;
	struct Qp {
		std::uint32_t handle, sq_depth, rq_depth, sq_index, rq_index;
		std::uint64_t context, sq, rq; // where the queues are in BAR 4
		std::uint16_t sq_posted = 0, rq_posted = 0;
	};
	Words qp_words(const Cq &sq_cq, const Cq &rq_cq, std::uint32_t sq_depth,
		       std::uint32_t rq_depth, std::uint32_t number)
	{
		namespace field = wire::qp_create;
		const std::uint64_t words_at = number ? allocate(8) : kFree;
		Words words{{field::user_context, 0x99},
			    {field::user_context + 4, number},
			    {field::rnic_handle, rnic},
			    {field::sq_cq, sq_cq.handle},
			    {field::rq_cq, rq_cq.handle},
			    {field::sq_depth, sq_depth},
			    {field::rq_depth, rq_depth},
			    {field::srq, 0},
			    {field::flags, kAllFlags},
			    {field::send_sges, 4},
			    {field::receive_sges, 4},
			    {field::write_sges, 4},
			    {field::ord, 16},
			    {field::ird, 16},
			    {field::pd, kPd}};
		std::ranges::copy(address_words(field::sq_word, words_at),
				  std::back_inserter(words));
		std::ranges::copy(address_words(field::rq_word, words_at + 2),
				  std::back_inserter(words));
		return words;
	}
	Qp create_qp(const Cq &sq_cq, const Cq &rq_cq, std::uint32_t depth = 17,
		     const Words &more = {})
	{
		namespace field = wire::qp_create;
		Words words = qp_words(sq_cq, rq_cq, depth, depth, ++qps_made_);
		std::ranges::copy(more, std::back_inserter(words));
		const auto answer = ask(MessageId::qp_create, words);
		must(result(answer) == Status::ok);
		const auto at = [&](std::size_t offset) {
			return load_be<std::uint32_t>(answer, offset);
		};
		return {.handle = at(field::reply_handle),
			.sq_depth = at(field::reply_sq_depth),
			.rq_depth = at(field::reply_rq_depth),
			.sq_index = at(field::reply_sq_index),
			.rq_index = at(field::reply_rq_index),
			.context = std::uint64_t{0x99} << 32 | qps_made_,
			.sq = wire::page_base + at(field::reply_sq_start),
			.rq = wire::page_base + at(field::reply_rq_start)};
	}
	std::span<std::byte> modify(const Qp &qp, std::uint32_t state)
	{
		namespace field = wire::qp_modify;
		return ask(MessageId::qp_modify, modify_words(qp, state));
	}
	Words modify_words(const Qp &qp, std::uint32_t state) const
	{
		namespace field = wire::qp_modify;
		return {{field::rnic_handle, rnic},
			{field::qp_handle, qp.handle},
			{field::next_state, state},
			{field::ord, wire::no_change},
			{field::ird, wire::no_change}};
	}
	Status modify(const Qp &qp, wire::QpState state)
	{
		return result(modify(qp, static_cast<std::uint32_t>(state)));
	}
	Status destroy(MessageId id, std::uint32_t handle)
	{
		return result(ask(id, {{wire::rnic_handle, rnic}, {wire::object_handle, handle}}));
	}

	struct Piece {
		std::uint32_t stag, length;
		std::uint64_t offset;
	};
	using Slot = std::vector<std::byte>;
	static Slot slot_of(wire::WorkId id, std::uint64_t context, std::uint8_t flags,
			    const Words &words, std::size_t at, const std::vector<Piece> &pieces)
	{
		Slot slot(at + pieces.size() * wire::sge::size, std::byte{0xee});
		slot[wire::header::id] = static_cast<std::byte>(id);
		slot[wire::header::result] = static_cast<std::byte>(Status::pending);
		slot[wire::work::sge_count] = static_cast<std::byte>(pieces.size());
		slot[wire::work::flags] = static_cast<std::byte>(flags);
		store_be<std::uint64_t>(slot, wire::header::context, context);
		for (const auto &[offset, value] : words)
			store_be<std::uint32_t>(slot, offset, value);
		for (const Piece &each : pieces) {
			store_be<std::uint32_t>(slot, at + wire::sge::stag, each.stag);
			store_be<std::uint32_t>(slot, at + wire::sge::length, each.length);
			store_be<std::uint64_t>(slot, at + wire::sge::offset, each.offset);
			at += wire::sge::size;
		}
		return slot;
	}
	static std::uint32_t total(const std::vector<Piece> &pieces)
	{
		std::uint32_t sum = 0;
		for (const Piece &each : pieces)
			sum += each.length;
		return sum;
	}
	void post(std::uint64_t queue, std::uint32_t index, std::uint32_t depth, std::size_t size,
		  std::uint16_t &posted, const Slot &slot)
	{
		host.write_register(4, queue + wire::shared::size + posted * size, slot);
		posted = static_cast<std::uint16_t>((posted + 1) % depth);
		put<std::uint16_t>(queue + wire::shared::index, posted);
		host.write<std::uint32_t>(0, wire::reg::adapter_hint,
					  index << wire::hint_index_shift | posted);
	}
	void post(Qp &qp, const Slot &slot)
	{
		post(qp.sq, qp.sq_index, qp.sq_depth, 256, qp.sq_posted, slot);
	}
	void send(Qp &qp, std::uint64_t context, const std::vector<Piece> &pieces,
		  std::uint8_t flags = wire::work::signaled, wire::WorkId id = wire::WorkId::send,
		  std::uint32_t invalidates = 0)
	{
		post(qp, slot_of(id, context, flags,
				 {{wire::send::total, total(pieces)},
				  {wire::send::remote_stag, invalidates}},
				 wire::send::sges, pieces));
	}
	void write(Qp &qp, std::uint64_t context, const std::vector<Piece> &pieces,
		   std::uint32_t stag, std::uint64_t offset,
		   std::uint8_t flags = wire::work::signaled)
	{
		Words words = address_words(wire::rdma_write::remote_offset, offset);
		words.insert(words.end(), {{wire::rdma_write::remote_stag, stag},
					   {wire::rdma_write::total, total(pieces)}});
		post(qp, slot_of(wire::WorkId::rdma_write, context, flags, words,
				 wire::rdma_write::sges, pieces));
	}
	void read(Qp &qp, std::uint64_t context, const Piece &into, std::uint32_t stag,
		  std::uint64_t offset, wire::WorkId id = wire::WorkId::rdma_read)
	{
		Words words = address_words(wire::rdma_read::remote_offset, offset);
		std::ranges::copy(address_words(wire::rdma_read::local_offset, into.offset),
				  std::back_inserter(words));
		words.insert(words.end(), {{wire::rdma_read::local_stag, into.stag},
					   {wire::rdma_read::remote_stag, stag},
					   {wire::rdma_read::length, into.length}});
		post(qp,
		     slot_of(id, context, wire::work::signaled, words, wire::rdma_read::size, {}));
	}
	void receive(Qp &qp, std::uint64_t context, const std::vector<Piece> &pieces)
	{
		post(qp.rq, qp.rq_index, qp.rq_depth, 96, qp.rq_posted,
		     slot_of(wire::WorkId::receive, context, 0, {}, wire::receive_request::sges,
			     pieces));
	}

	// A region of @pages pages of 4096 bytes with all rights. It begins @first bytes into the
	// first page. Its first byte has the offset @va.
	struct Region {
		std::uint32_t stag;
		Status status;
	};
	static constexpr std::uint32_t kAllRights = 0x7b;
	Region register_pages(const std::vector<std::uint64_t> &pages, std::uint64_t va,
			      std::uint32_t first, std::uint32_t length,
			      std::uint32_t flags = kAllRights, const Words &more = {})
	{
		namespace field = wire::mr_register;
		const auto list = [&](std::size_t from, std::size_t count) {
			std::vector<std::byte> bytes(8 * count);
			for (std::size_t i = 0; i < count; ++i)
				store_be<std::uint64_t>(bytes, 8 * i, pages[from + i]);
			return bytes;
		};
		std::size_t done = std::min<std::size_t>(pages.size(), field::most_pages);
		const bool complete = done == pages.size();
		Words words = address_words(field::va, va);
		words.insert(
			words.end(),
			{{field::rnic_handle, rnic},
			 {field::flags, (flags | (complete ? +wire::mr_flag::complete : 0)) << 16},
			 {field::pd, kPd},
			 {field::total_pages, static_cast<std::uint32_t>(pages.size())},
			 {field::page_size, 4096},
			 {field::first_offset, first},
			 {field::length, length},
			 {field::pages_here, static_cast<std::uint32_t>(done)}});
		std::ranges::copy(more, std::back_inserter(words));
		const auto answer = ask(MessageId::mr_register, words, list(0, done), field::pages);
		if (result(answer) != Status::ok)
			return {0, result(answer)};
		const auto stag = load_be<std::uint32_t>(answer, field::reply_stag);
		while (done < pages.size()) {
			namespace rest = wire::mr_page_list;
			const std::size_t count =
				std::min<std::size_t>(pages.size() - done, rest::most_pages);
			const bool last = done + count == pages.size();
			const Words part{{rest::flags, last ? +wire::mr_flag::complete : 0},
					 {wire::rnic_handle, rnic},
					 {rest::stag, stag},
					 {rest::pages_here, static_cast<std::uint32_t>(count)}};
			if (last)
				return {stag, result(ask(MessageId::mr_page_list, part,
							 list(done, count), rest::pages))};
			fill(MessageId::mr_page_list, part, 0, list(done, count), rest::pages);
			ring();
			must(until([&] { return taken(); }));
			done += count;
		}
		return {stag, Status::ok};
	}
	// Registers a region whose offsets are bus addresses.
	std::uint32_t register_memory(std::uint64_t address, std::uint32_t length,
				      std::uint32_t flags = kAllRights, const Words &more = {})
	{
		std::vector<std::uint64_t> pages;
		for (std::uint64_t at = address / 4096 * 4096; at < address + length; at += 4096)
			pages.push_back(at);
		const Region region =
			register_pages(pages, address, static_cast<std::uint32_t>(address % 4096),
				       length, flags, more);
		must(region.status == Status::ok);
		return region.stag;
	}

	/* --- connections --- */

	using Event = std::vector<std::byte>;
	static wire::EventId id_of(const Event &event)
	{
		return static_cast<wire::EventId>(event[wire::header::id]);
	}
	static std::uint32_t field(const Event &event, std::size_t at)
	{
		return load_be<std::uint32_t>(event, at);
	}
	static wire::QpState state_of(const Event &event)
	{
		return static_cast<wire::QpState>(field(event, wire::event::qp_state));
	}
	std::optional<Event> next_event()
	{
		if (word(kEventWord) == events_read)
			return std::nullopt;
		const auto at =
			host.memory(kEvents + events_read * wire::message_size, wire::message_size);
		Event event(at.begin(), at.end());
		events_read = static_cast<std::uint16_t>((events_read + 1) % wire::event_entries);
		put<std::uint16_t>(event_shared + wire::shared::index, events_read);
		return event;
	}
	Event wait_event()
	{
		std::optional<Event> event;
		must(until([&] { return (event = next_event()).has_value(); }));
		return *event;
	}
	std::uint32_t listen(std::uint16_t port, std::uint32_t backlog = 8)
	{
		const auto answer = try_listen(0, port, backlog);
		must(result(answer) == Status::ok);
		return load_be<std::uint32_t>(answer, wire::listen_create::reply_handle);
	}
	std::span<std::byte> try_listen(std::uint32_t address, std::uint16_t port,
					std::uint32_t backlog = 8)
	{
		namespace at = wire::listen_create;
		return ask(MessageId::listen_create, {{at::user_context, 0x77},
						      {at::user_context + 4, port},
						      {at::rnic_handle, rnic},
						      {at::address, address},
						      {at::port, std::uint32_t{port} << 16},
						      {at::backlog, backlog}});
	}
	void connect(const Qp &qp, std::uint32_t address, std::uint16_t port,
		     std::span<const std::byte> data = {})
	{
		namespace at = wire::qp_connect;
		fill(MessageId::qp_connect,
		     {{wire::rnic_handle, rnic},
		      {at::qp_handle, qp.handle},
		      {at::remote_address, address},
		      {at::remote_port, std::uint32_t{port} << 16},
		      {at::private_length, static_cast<std::uint32_t>(data.size())}},
		     0, data.first(std::min<std::size_t>(data.size(), wire::most_private_data)),
		     at::private_data);
		ring();
	}
	Status accept(const Qp &qp, std::uint32_t endpoint, std::span<const std::byte> data = {})
	{
		namespace at = wire::request_accept;
		return result(ask(MessageId::request_accept,
				  {{wire::rnic_handle, rnic},
				   {at::qp_handle, qp.handle},
				   {at::endpoint, endpoint},
				   {at::private_length, static_cast<std::uint32_t>(data.size())}},
				  data, at::private_data));
	}

	weft::testing::FakeHost host;
	std::unique_ptr<cards::Card> card;
	std::uint64_t shared = 0, requests = 0, reply_shared = 0, event_shared = 0;
	std::uint16_t produced = 0, events_read = 0;
	std::uint32_t rnic = 0;

private:
	std::uint64_t next_free_ = kFree;
	std::uint32_t qps_made_ = 0;
};

} // namespace weft::amso1100::testing
