// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "diagnostics.hpp"

namespace mlx4
{

namespace
{

using Report = wire::DiagReport;

struct Counter {
	const char *name;
	wire::Field field;
};

/* Counters of errors of queue pairs, followed by those that belong to no queue pair. */
constexpr Counter table[] = {
	{"rq_num_lle", Report::rq_local_length},
	{"sq_num_lle", Report::sq_local_length},
	{"rq_num_lqpoe", Report::rq_local_qp_operation},
	{"sq_num_lqpoe", Report::sq_local_qp_operation},
	{"rq_num_lpe", Report::rq_local_protection},
	{"sq_num_lpe", Report::sq_local_protection},
	{"rq_num_wrfe", Report::rq_flushed},
	{"sq_num_wrfe", Report::sq_flushed},
	{"sq_num_mwbe", Report::sq_window_bind},
	{"sq_num_bre", Report::sq_bad_response},
	{"sq_num_rire", Report::sq_remote_invalid_request},
	{"rq_num_rire", Report::rq_remote_invalid_request},
	{"sq_num_rae", Report::sq_remote_access},
	{"rq_num_rae", Report::rq_remote_access},
	{"sq_num_roe", Report::sq_remote_operation},
	{"sq_num_tree", Report::sq_retries_exceeded},
	{"sq_num_rree", Report::sq_rnr_retries_exceeded},
	{"rq_num_rnr", Report::rq_rnr_naks},
	{"sq_num_rnr", Report::sq_rnr_naks},
	{"rq_num_oos", Report::rq_out_of_sequence},
	{"sq_num_oos", Report::sq_out_of_sequence},
	{"num_cqovf", Report::cq_overflows},
	{"rq_num_udsdprd", Report::rq_ud_discarded},
};
constexpr u32 count = sizeof(table) / sizeof(table[0]);
constexpr u32 card_only_counters = 2;

struct Names {
	const char *texts[count] = {};

	constexpr Names()
	{
		for (u32 i = 0; i < count; i++)
			texts[i] = table[i].name;
	}
};
constexpr Names names;

constexpr rdma_hw_counters of_card = {.names = names.texts, .count = count};
constexpr rdma_hw_counters of_only_port = {.names = names.texts,
					   .count = count - card_only_counters};

} // namespace

const rdma_hw_counters *counters_of(const Hca &hca, u32 port)
{
	if (port == 0)
		return &of_card;
	return hca.num_ports() == 1 ? &of_only_port : nullptr;
}

kern::Result<> read_counters(Hca &hca, const rdma_hw_counters &counters, u64 *values)
{
	auto mailbox = KERN_TRY(hca.commands().mailbox());

	KERN_TRY(hca.commands().execute_out(
		{.opcode = wire::Opcode::diag_rprt,
		 .op_modifier = static_cast<u8>(Report::op_transport_errors)},
		mailbox));
	for (u32 i = 0; i < counters.count; i++)
		values[i] = table[i].field.get(mailbox.bytes());
	return {};
}

} // namespace mlx4
