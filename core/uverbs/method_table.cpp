// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the table of methods and their attributes, and calls a method.
#include <array>
#include <kern/nospec.hpp>
#include "methods.hpp"

namespace uverbs
{

namespace
{

constexpr bool optional = false, mandatory = true;

template<class T>
constexpr Attribute in(u16 id, bool is_mandatory = mandatory)
{
	return {.id = id,
		.form = Form::in,
		.mandatory = is_mandatory,
		.size = sizeof(T),
		.bound = 0};
}
template<class T>
constexpr Attribute in_growing(u16 id)
{
	return {.id = id,
		.form = Form::in_growing,
		.mandatory = true,
		.size = sizeof(T),
		.bound = 0};
}
template<class T>
constexpr Attribute out(u16 id, bool is_mandatory = mandatory)
{
	return {.id = id,
		.form = Form::out,
		.mandatory = is_mandatory,
		.size = sizeof(T),
		.bound = 0};
}
constexpr Attribute constant(u16 id, u64 largest)
{
	return {.id = id, .form = Form::constant, .mandatory = true, .size = 0, .bound = largest};
}
constexpr Attribute flags(u16 id, u64 all, bool is_mandatory = optional)
{
	return {.id = id, .form = Form::flags, .mandatory = is_mandatory, .size = 0, .bound = all};
}
constexpr Attribute of_form(u16 id, Form form, bool is_mandatory = mandatory)
{
	return {.id = id, .form = form, .mandatory = is_mandatory, .size = 0, .bound = 0};
}
constexpr Attribute handle(u16 id, bool is_mandatory = mandatory)
{
	return of_form(id, Form::handle, is_mandatory);
}
constexpr Attribute made(u16 id)
{
	return of_form(id, Form::new_handle);
}
constexpr Attribute descriptor(u16 id)
{
	return of_form(id, Form::descriptor, optional);
}
constexpr Attribute bytes_in(u16 id)
{
	return of_form(id, Form::in_bytes, optional);
}
constexpr Attribute output_buffer(u16 id, bool is_mandatory = optional)
{
	return of_form(id, Form::out, is_mandatory);
}
constexpr Attribute driver_in = bytes_in(abi::driver_in),
		    driver_out = output_buffer(abi::driver_out);

constexpr Attribute of_invoke_write[] = {
	bytes_in(abi::invoke_write::core_in),
	output_buffer(abi::invoke_write::core_out),
	constant(abi::invoke_write::command, ~u32{}),
	driver_in,
	driver_out,
};
constexpr Attribute of_query_port[] = {
	constant(abi::query_port_method::port_num, 0xff),
	out<abi::PortAttributesExtended>(abi::query_port_method::response),
};
constexpr Attribute of_get_context[] = {
	out<u32>(abi::context_method::num_comp_vectors, optional),
	out<u64>(abi::context_method::core_support, optional),
	driver_in,
	driver_out,
};
constexpr Attribute of_query_context[] = {
	out<u32>(abi::context_method::num_comp_vectors, optional),
	out<u64>(abi::context_method::core_support, optional),
};
constexpr Attribute of_query_gid_table[] = {
	constant(abi::query_gid_table::entry_size, 0xffff),
	flags(abi::query_gid_table::flags, 0),
	output_buffer(abi::query_gid_table::entries, mandatory),
	out<u64>(abi::query_gid_table::used),
};
constexpr Attribute of_query_gid_entry[] = {
	constant(abi::query_gid_entry::port, ~u32{}),
	constant(abi::query_gid_entry::index, ~u32{}),
	flags(abi::query_gid_entry::flags, 0, mandatory),
	out<abi::GidEntry>(abi::query_gid_entry::entry),
};
constexpr Attribute of_alloc_async_event[] = {
	of_form(abi::alloc_async_event::fd, Form::new_descriptor)};
constexpr Attribute of_destroy[] = {handle(abi::destroy_method::handle)};
constexpr Attribute of_destroy_cq[] = {
	handle(abi::destroy_method::handle),
	out<abi::DestroyCqResponse>(abi::destroy_method::response),
};
constexpr Attribute of_destroy_queue[] = {
	handle(abi::destroy_method::handle),
	out<abi::DestroyResponse>(abi::destroy_method::response),
};
constexpr Attribute of_create_cq[] = {
	made(abi::create_cq_method::handle),
	in<u32>(abi::create_cq_method::cqe),
	in<u64>(abi::create_cq_method::user_handle),
	descriptor(abi::create_cq_method::comp_channel),
	in<u32>(abi::create_cq_method::comp_vector),
	flags(abi::create_cq_method::flags, abi::cq_flags),
	out<u32>(abi::create_cq_method::response_cqe),
	descriptor(abi::create_cq_method::event_fd),
	driver_in,
	driver_out,
};
constexpr Attribute of_create_qp[] = {
	made(abi::create_qp_method::handle),
	handle(abi::create_qp_method::xrcd, optional),
	handle(abi::create_qp_method::pd, optional),
	handle(abi::create_qp_method::srq, optional),
	handle(abi::create_qp_method::send_cq, optional),
	handle(abi::create_qp_method::recv_cq, optional),
	handle(abi::create_qp_method::ind_table, optional),
	in<u64>(abi::create_qp_method::user_handle),
	in_growing<abi::QpCapacity>(abi::create_qp_method::cap),
	constant(abi::create_qp_method::type, 0xff),
	flags(abi::create_qp_method::flags,
	      IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | abi::create_qp_method::flag_sq_sig_all),
	in<u32>(abi::create_qp_method::source_qpn, optional),
	descriptor(abi::create_qp_method::event_fd),
	out<abi::QpCapacity>(abi::create_qp_method::response_cap),
	out<u32>(abi::create_qp_method::response_qp_num),
	driver_in,
	driver_out,
};
constexpr Attribute of_create_srq[] = {
	made(abi::create_srq_method::handle),
	handle(abi::create_srq_method::pd),
	handle(abi::create_srq_method::xrcd, optional),
	handle(abi::create_srq_method::cq, optional),
	in<u64>(abi::create_srq_method::user_handle),
	in<u32>(abi::create_srq_method::max_wr),
	in<u32>(abi::create_srq_method::max_sge),
	in<u32>(abi::create_srq_method::limit),
	in<u32>(abi::create_srq_method::max_num_tags, optional),
	constant(abi::create_srq_method::type, ~u32{}),
	descriptor(abi::create_srq_method::event_fd),
	out<u32>(abi::create_srq_method::response_max_wr),
	out<u32>(abi::create_srq_method::response_max_sge),
	out<u32>(abi::create_srq_method::response_srq_num, optional),
	driver_in,
	driver_out,
};

struct Method {
	u16 object;
	u16 number;
	Needs needs;
	std::span<const Attribute> attributes;
	kern::Result<> (*run)(Call &call, const Attributes &attributes);
};

constexpr Method all_methods[] = {
	{abi::object_device, abi::device_invoke_write, Needs::nothing, of_invoke_write,
	 methods::invoke_write},
	{abi::object_device, abi::device_query_port, Needs::context, of_query_port,
	 methods::query_port},
	{abi::object_device, abi::device_get_context, Needs::device, of_get_context,
	 methods::get_context},
	{abi::object_device, abi::device_query_context, Needs::context, of_query_context,
	 methods::query_context},
	{abi::object_device, abi::device_query_gid_table, Needs::context, of_query_gid_table,
	 methods::query_gid_table},
	{abi::object_device, abi::device_query_gid_entry, Needs::context, of_query_gid_entry,
	 methods::query_gid_entry},
	{abi::object_async_event, abi::async_event_alloc, Needs::context, of_alloc_async_event,
	 methods::alloc_async_event},
	{abi::object_pd, abi::object_only_destroy, Needs::nothing, of_destroy, methods::dealloc_pd},
	{abi::object_mr, abi::object_destroy, Needs::nothing, of_destroy, methods::dereg_mr},
	{abi::object_mw, abi::object_only_destroy, Needs::nothing, of_destroy, methods::dealloc_mw},
	{abi::object_ah, abi::object_only_destroy, Needs::nothing, of_destroy, methods::destroy_ah},
	{abi::object_xrcd, abi::object_only_destroy, Needs::nothing, of_destroy,
	 methods::close_xrcd},
	{abi::object_cq, abi::object_create, Needs::context, of_create_cq, methods::create_cq},
	{abi::object_cq, abi::object_destroy, Needs::nothing, of_destroy_cq, methods::destroy_cq},
	{abi::object_qp, abi::object_create, Needs::context, of_create_qp, methods::create_qp},
	{abi::object_qp, abi::object_destroy, Needs::nothing, of_destroy_queue,
	 methods::destroy_qp},
	{abi::object_srq, abi::object_create, Needs::context, of_create_srq, methods::create_srq},
	{abi::object_srq, abi::object_destroy, Needs::nothing, of_destroy_queue,
	 methods::destroy_srq},
};

/*
 * Indexed by object and method number. An entry is the index in the list plus one, or 0 if there is
 * no such method.
 */
constexpr size_t object_count = abi::object_async_event + 1,
		 number_count = abi::device_query_gid_entry + 1;
using Index = std::array<u8, object_count * number_count>;
constexpr Index make_index()
{
	Index made{};
	u8 place = 0;
	for (const Method &method : all_methods)
		made[method.object * number_count + method.number] = ++place;
	return made;
}
constexpr Index index = make_index();

const Method *find(u16 object, u16 number)
{
	if (object >= object_count || number >= number_count)
		return nullptr;
	const u8 place = index[kern::index_nospec(object, object_count) * number_count +
			       kern::index_nospec(number, number_count)];
	return place ? &all_methods[place - 1] : nullptr;
}

} // namespace

kern::Result<> run_method(File &file, u64 from, Present present)
{
	abi::MethodHeader header;

	KERN_TRY(kern::copy_in(&header, from, sizeof(header)));
	if (header.length > abi::longest_method ||
	    header.length != sizeof(header) + header.attributes * sizeof(abi::Attribute))
		return kern::Error{-EINVAL};
	if (header.reserved || header.reserved2)
		return kern::Error{-EPROTONOSUPPORT};
	if (present.device && header.driver != file.device().ops.driver_id)
		return kern::Error{-EINVAL};
	const Method *const method = find(header.object, header.method);
	if (!method)
		return kern::Error{-EPROTONOSUPPORT};

	Attributes attributes(method->attributes);
	KERN_TRY(attributes.take(from + sizeof(header), header.attributes));
	KERN_TRY(present.check(method->needs));
	Call call(file, present);
	const Attributes::Place in = attributes.place(abi::driver_in),
				out = attributes.place(abi::driver_out);
	call.set_driver_parts(in.address, in.size, out.address, out.size);
	KERN_TRY(method->run(call, attributes));
	/*
	 * The method has succeeded, so an error when marking the attribute in the program's list is
	 * ignored.
	 */
	if (out.size)
		kern::ignore(attributes.answered(abi::driver_out));
	return {};
}

} // namespace uverbs
