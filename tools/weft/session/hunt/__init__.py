# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""`weft hunt`: schedules drawn from seeds, run in virtual time until a guest's kernel reports something, and reduced to the steps that it takes."""
