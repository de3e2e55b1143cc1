// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines how firmware tools (mstflint) reach the card without its driver: the gateway in the
 * vendor-specific capability of configuration space, the firmware commands behind it, and the
 * registers that these commands access. (Documentation/mlx5.rst, "Management programs")
 */
#pragma once

#include <hw/mlx5/registers.hpp>

namespace hw::mlx5
{

/*
 * Offsets in the capability. Software locks the gateway: it reads a number from the counter and
 * writes it to the semaphore, which keeps it if it was 0. It then selects a space, and reads or
 * writes dwords in it.
 */
namespace gateway
{
constexpr unsigned size = 0x18;
constexpr unsigned control = 0x04;
constexpr unsigned counter = 0x08;
constexpr unsigned semaphore = 0x0c;
constexpr unsigned address = 0x10;
constexpr unsigned data = 0x14;

constexpr Field space{0, 15, 0};
constexpr Field space_status{0, 31, 29}; /* not 0: the card has the space */
/* The card sets it when a read is complete, and clears it when a write is. */
constexpr Field address_flag{0, 31, 31};
constexpr Field address_bits{0, 29, 0};

enum class Space : std::uint16_t {
	extended_command = 0x1, /* the same as command */
	registers = 0x2,
	command = 0x3,
	semaphores = 0xa,
};

/* The space of registers. */
constexpr std::uint32_t device_id = 0xf0014;
constexpr std::uint32_t connectx_5 = 0x20d;
} // namespace gateway

/* The space of firmware commands. */
namespace firmware_command
{
constexpr std::uint32_t control = 0;
constexpr std::uint32_t size = 0x1000; /* of the mailbox, in bytes */
constexpr std::uint32_t mailbox = 0x100000;

constexpr Field opcode{0, 31, 16};
constexpr Field status{0, 15, 8};
constexpr Field busy{0, 0, 0};
constexpr std::uint32_t access_register = 0x9001;
constexpr std::uint32_t ok = 0;
constexpr std::uint32_t invalid_opcode = 1;
} // namespace firmware_command

/* The mailbox of access_register: what is to be done, and the register. */
struct RegisterAccess {
	static constexpr Field status{0x00, 14, 8};
	static constexpr Field number{0x04, 31, 16};
	static constexpr Field response{0x04, 15, 15};
	static constexpr Field method{0x04, 14, 8};
	static constexpr Field dwords{0x10, 26, 16}; /* of the register, and one */
	static constexpr std::size_t data = 0x14;

	static constexpr std::uint32_t read = 1;
	static constexpr std::uint32_t write = 2;
	static constexpr std::uint32_t ok = 0;
	static constexpr std::uint32_t not_supported = 4;
	static constexpr std::uint32_t method_not_supported = 6;
	static constexpr std::uint32_t bad_parameter = 7;
};

/* MGIR: general information. */
struct GeneralInformation {
	static constexpr std::uint32_t number = 0x9020;
	static constexpr std::size_t size = 0xa0;
	static constexpr Field device_id{0x00, 15, 0};
	static constexpr Field ports{0x04, 23, 16};
	static constexpr Field hardware_id{0x08, 15, 0};
	static constexpr std::size_t board_id = 0x30; /* 16 bytes */
	static constexpr Field firmware_major{0x44, 31, 0};
	static constexpr Field firmware_minor{0x48, 31, 0};
	static constexpr Field firmware_subminor{0x4c, 31, 0};
};

/* MCQS: state of a component of the firmware. */
struct ComponentStatus {
	static constexpr std::uint32_t number = 0x9060;
	static constexpr std::size_t size = 0x10;
	static constexpr Field index{0x00, 15, 0};
	static constexpr Field last{0x00, 31, 31};
	static constexpr Field identifier{0x04, 15, 0};
	static constexpr Field status{0x08, 8, 4};
	static constexpr std::uint32_t boot_image = 1;
	static constexpr std::uint32_t in_use = 2;
};

/* MCQI: properties of a component of the firmware. */
struct ComponentInformation {
	static constexpr std::uint32_t number = 0x9061;
	static constexpr std::size_t size = 0x94;
	static constexpr Field index{0x00, 15, 0};
	static constexpr Field kind{0x08, 4, 0};
	static constexpr Field info_size{0x0c, 31, 0};
	static constexpr Field offset{0x10, 31, 0};
	static constexpr Field data_size{0x14, 15, 0};
	static constexpr std::size_t data = 0x18;
	static constexpr std::size_t data_most = size - data;

	static constexpr std::uint32_t capabilities = 0;
	static constexpr std::uint32_t version = 1;
	static constexpr std::uint32_t activation = 5;
	/* Offsets in the data. */
	static constexpr Field supported_kinds{0x00, 31, 0};
	static constexpr Field version_length{0x00, 7, 0};
	static constexpr Field version_number{0x04, 31, 0};
	static constexpr std::size_t version_string = 0x20;
	static constexpr Field after_firmware_reset{0x00, 2, 2};
};

/* MCC: control of an update, of which there is never one. */
struct ComponentControl {
	static constexpr std::uint32_t number = 0x9062;
	static constexpr std::size_t size = 0x20;
};

/* MCDA: data of a component. */
struct ComponentData {
	static constexpr std::uint32_t number = 0x9063;
	static constexpr std::size_t size = 0x10;
};

/* MQIS: texts that describe the card. */
struct InformationString {
	static constexpr std::uint32_t number = 0x9064;
	static constexpr std::size_t size = 0x18;
	static constexpr Field kind{0x00, 7, 0};
	static constexpr Field length{0x04, 15, 0};
	static constexpr Field read_offset{0x08, 31, 16};
	static constexpr Field read_length{0x08, 15, 0};
	static constexpr std::size_t data = 0x10;
	static constexpr std::uint32_t model_name = 1;
	static constexpr std::uint32_t model_description = 2;
};

/* MCAM: which registers the card has; bit n is the register 0x9000 + n. */
struct RegisterCapabilities {
	static constexpr std::uint32_t number = 0x907f;
	static constexpr std::size_t size = 0x48;
	static constexpr Field group{0x00, 7, 0};
	static constexpr std::size_t mask = 0x08; /* 16 bytes, the highest bit first */
	static constexpr std::uint32_t first = 0x9000;
};

} // namespace hw::mlx5
