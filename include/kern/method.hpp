// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Converts a member function to a value that callbacks can be initialised with:
// kern::method<&Device::refresh>.
#pragma once

namespace kern
{

template<auto Member>
struct Method {
};

template<auto Member>
inline constexpr Method<Member> method{};

} // namespace kern
