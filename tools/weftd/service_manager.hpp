// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Notifies the service manager (usually systemd) of the state of weftd, by the protocol of
// sd_notify(3).
#pragma once

#include <string_view>

namespace weft::weftd
{

// Sends @state, such as "READY=1", to the socket in the environment variable NOTIFY_SOCKET. Does
// nothing if the variable is not set. A failure is logged, because the manager then waits in vain.
void notify_service_manager(std::string_view state);

} // namespace weft::weftd
