// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Makes a member function a value, for callbacks: kern::method<&Device::refresh>.
#pragma once

namespace kern
{

template<auto Member>
struct Method {
};

template<auto Member>
inline constexpr Method<Member> method{};

} // namespace kern
