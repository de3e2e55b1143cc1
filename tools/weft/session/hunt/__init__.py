# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements `weft hunt`. It generates random schedules from seeds, runs them in virtual time until a guest's kernel reports an error,
and reduces a schedule to the steps that are needed to reproduce the error."""
