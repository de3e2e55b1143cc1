// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the receive path, from the midlayer to a program's read(). */
#include <kern/user.hpp>
#include "file.hpp"
#include "port.hpp"

namespace umad
{

namespace
{

/*
 * Fills in the sender's address as a program needs it for a reply. Errors: EINVAL if a reply is not
 * possible.
 */
kern::Result<> describe(const ib_mad_agent &mad, const ib_mad_recv_wc &received,
			abi::Header &header)
{
	const ib_wc &from = *received.wc;

	header.qpn = from.src_qp;
	header.lid = static_cast<u16>(from.slid);
	header.sl = from.sl;
	header.path_bits = from.dlid_path_bits;
	header.pkey_index = from.pkey_index;
	header.grh_present = (from.wc_flags & IB_WC_GRH) != 0;
	if (!header.grh_present)
		return {};

	rdma_ah_attr back{};
	KERN_TRY_ERRNO(ib_init_ah_attr_from_wc(mad.device, mad.port_num, &from,
					       received.recv_buf.grh, &back));
	const ib_global_route &route = *rdma_ah_read_grh(&back);
	header.gid_index = route.sgid_index;
	header.hop_limit = route.hop_limit;
	header.traffic_class = route.traffic_class;
	__builtin_memcpy(header.gid, route.dgid.raw, sizeof(header.gid));
	header.flow_label = route.flow_label;
	return {};
}

ib_mad_recv_buf &segment_of(ib_list_head *link)
{
	return *reinterpret_cast<ib_mad_recv_buf *>(reinterpret_cast<char *>(link) -
						    __builtin_offsetof(ib_mad_recv_buf, list));
}

} // namespace

void File::on_received(const Agent &agent, const ib_mad_agent &mad, Send *asked,
		       ib_mad_recv_wc *received)
{
	/*
	 * The allocation must not wait for memory: the task that frees memory may itself wait for
	 * MADs, which this work item receives.
	 */
	kern::Owned<Unread> message =
		asked ? asked->take_outcome()
		      : kern::make<Unread>(kern::Gfp::nowait | kern::Gfp::no_warn,
					   Unread::Kind::unsolicited)
				.value_or({});
	if (!message) {
		ib_free_recv_mad(received);
		return;
	}
	const abi::Header unanswered = std::exchange(message->header, abi::Header{});
	message->received = received;
	message->header.id = agent.id();
	message->header.length = static_cast<u32>(header_size() + message->size());
	if (describe(mad, *received, message->header) && push(message, asked))
		return;
	if (asked) {
		/* A response that cannot be queued is reported as a missing response. */
		message->drop_received();
		message->header = unanswered;
		push(message, asked);
	}
}

void File::count_locked(const Unread &message)
{
	unread_mads_ += message.counted_mads();
	unread_outcomes_ += message.kind == Unread::Kind::outcome;
}

void File::discount_locked(const Unread &message)
{
	unread_mads_ -= message.counted_mads();
	unread_outcomes_ -= message.kind == Unread::Kind::outcome;
}

bool File::push(kern::Owned<Unread> &message, Send *over)
{
	{
		kern::Guard guard(lock_);
		if (message->counted_mads() && unread_mads_ >= mads_max)
			return false;
		/*
		 * The send is removed from the list first: after the program has read the message,
		 * it may use the same transaction ID again.
		 */
		if (over)
			over->node.unlink();
		count_locked(*message);
		unread_.push_back(*message.release());
	}
	readers_.wake();
	kern_file_signal(&native_);
	return true;
}

void File::put_back(kern::Owned<Unread> message)
{
	{
		kern::Guard guard(lock_);
		count_locked(*message);
		unread_.push_front(*message.release());
	}
	readers_.wake();
}

kern::Owned<Unread> File::pop()
{
	kern::Guard guard(lock_);
	auto message = kern::Owned<Unread>::adopt(unread_.pop_front());
	if (message)
		discount_locked(*message);
	return message;
}

kern::Result<size_t> File::read(u64 to, size_t count, bool wait)
{
	if (count < header_size())
		return kern::Error{-EINVAL};
	while (true) {
		if (state() != State::opened)
			return kern::Error{-EIO};
		if (kern::Owned<Unread> message = pop()) {
			const kern::Result<size_t> shown = show(*message, to, count);
			/*
			 * The message is queued again. A program can read the size first, and then
			 * call again with a larger buffer.
			 */
			if (!shown)
				put_back(std::move(message));
			return shown;
		}
		if (!wait)
			return kern::Error{-EAGAIN};
		KERN_TRY(readers_.wait_interruptible([&] {
			kern::Guard guard(lock_);
			return state() != State::opened || !unread_.empty();
		}));
	}
}

/*
 * Copies a message to the program. If the buffer is too small for it, the header and the first
 * segment, which contain the size, are copied and ENOSPC is returned.
 */
kern::Result<size_t> File::show(const Unread &message, u64 to, size_t count) const
{
	const size_t header_bytes = header_size(), size = message.size();
	const size_t first = size < IB_MGMT_MAD_SIZE ? size : size_t{IB_MGMT_MAD_SIZE};

	if (count < header_bytes + first)
		return kern::Error{-EINVAL};
	KERN_TRY(kern::copy_out(to, &message.header, header_bytes));
	to += header_bytes;
	if (!message.received) {
		KERN_TRY(kern::copy_out(to, &message.unanswered, size));
		return header_bytes + size;
	}

	ib_mad_recv_wc &received = *message.received;
	KERN_TRY(kern::copy_out(to, received.recv_buf.mad, first));
	if (size > first && count < header_bytes + size)
		return kern::Error{-ENOSPC};
	/* In the segments after the first one, the headers of the class are not copied. */
	const auto headers = static_cast<size_t>(
		ib_get_mad_data_offset(received.recv_buf.mad->mad_hdr.mgmt_class));
	ib_list_head *link = &received.recv_buf.list;
	for (size_t at = first; at < size;) {
		link = link->next;
		const size_t capacity = IB_MGMT_MAD_SIZE - headers,
			     part = size - at < capacity ? size - at : capacity;
		KERN_TRY(kern::copy_out(
			to + at, reinterpret_cast<const u8 *>(segment_of(link).mad) + headers,
			part));
		at += part;
	}
	return header_bytes + size;
}

} // namespace umad
