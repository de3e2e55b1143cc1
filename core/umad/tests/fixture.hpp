/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
// Provides simulated programs that open the umad device of a port, and the nodes of the software
// fabric with which they exchange MADs.
#pragma once
#include <kern/kunit_process.hpp>
#include "../../mad/tests/fixture.hpp"
#include "../port.hpp"

namespace umad_fixture
{

using fixture::eventually;
using kern::kunit::Test;
using mad_fixture::Node;
using mad_fixture::vendor_class;
using mad_fixture::vendor_rmpp_class;

/* A LID that no port has. */
constexpr u16 unused_lid = 99;
constexpr u32 no_agent = 1000;
/* Bytes read for a send that was not answered. */
constexpr long unanswered = sizeof(umad::abi::Header) + IB_MGMT_MAD_HDR;

/* The unit in which a program reads and writes. */
struct Record {
	umad::abi::Header header{};
	ib_rmpp_mad mad{};
};
static_assert(sizeof(Record) == sizeof(umad::abi::Header) + IB_MGMT_MAD_SIZE);

/* Provides what the module provides to its ports. */
class Service
{
public:
	Service();
	~Service();
	Service(const Service &) = delete;
	Service &operator=(const Service &) = delete;

	bool ok() const { return ok_; }

private:
	bool begin();
	bool ok_ = false;
};

/* A port with its node, and the memory of the programs that open it. */
struct Bench {
	static constexpr std::size_t memory_size = 16 * kern::page_size;

	kern::kunit::Process process;
	kern::kunit::Mapping memory{process ? memory_size : 0};
	Service service;
	Node near{1}, far{2};
	kern::Ref<umad::Port> port;

	Bench();
	~Bench();
	bool ok() const { return memory.address() && port; }
};

/* A process that has opened the node. Methods return 0 or more, or a negative errno. */
class Program
{
public:
	explicit Program(Bench &bench);
	~Program();
	Program(const Program &) = delete;
	Program &operator=(const Program &) = delete;

	bool ok() const { return file_ != nullptr; }
	/*
	 * Registers an agent on QP1 for requests with these methods of the class; without methods,
	 * for sending only.
	 */
	u32 add(u8 mgmt_class = 0, u8 methods = 0, u8 rmpp_version = 0);
	long remove(u32 agent);
	long write(const Record &record, std::size_t mad_size = IB_MGMT_MAD_SIZE);
	/* Sends a request that expects a response within @timeout_ms. */
	long ask(u32 agent, u16 lid, u32 tid, u32 timeout_ms, u8 mgmt_class = vendor_class,
		 u8 method = IB_MGMT_METHOD_GET);
	/* @buffer_size is the size of the buffer without the header. */
	long read(Record &record, bool wait = false, std::size_t buffer_size = IB_MGMT_MAD_SIZE);
	/* Reads all MADs, and counts those with status ETIMEDOUT and those with status 0. */
	struct Read {
		unsigned int timed_out = 0, received = 0;
	};
	Read read_all();

private:
	Bench &bench_;
	kern::kunit::OpenedFile native_;
	umad::File *file_ = nullptr;
};

/* Waits for @ms by sending a request to which there is no response. */
void wait_ms(Test &test, Bench &bench, u32 ms);

/* Returns the record that Program::ask() writes. */
Record question(u32 agent, u16 lid, u32 tid, u32 timeout_ms, u8 mgmt_class = vendor_class,
		u8 method = IB_MGMT_METHOD_GET);

} // namespace umad_fixture
