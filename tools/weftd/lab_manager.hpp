// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses the table [sm] of a lab file, which configures the subnet manager and its partitions.
#pragma once

#include "weftd/lab_section.hpp"

namespace weft::weftd
{

// The switches and hosts of @lab have already been parsed. Throws LabError.
void parse_sm(LabSection &section, Lab &lab);

} // namespace weft::weftd
