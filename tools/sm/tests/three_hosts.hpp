// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides three hosts on two switches with one link between the switches, for tests.
#pragma once

#include <gtest/gtest.h>

#include "sm/tests/lab.hpp"

namespace weft::sm::testing
{

struct ThreeHosts : ::testing::Test {
	Lab lab;
	fabric::Switch &left = lab.fabric.add_switch({.name = "left", .ports = 8});
	fabric::Switch &right = lab.fabric.add_switch({.name = "right", .ports = 8});
	fabric::Link &trunk = lab.fabric.connect(left.port(8), right.port(8));
	Host &a = lab.add_host(left, 1);
	Host &b = lab.add_host(right, 1);
	Host &c = lab.add_host(right, 2);
};

} // namespace weft::sm::testing
