/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A congestion control that does nothing: what remains of an ACK's time with it
 * is the stack's, and one call of a program.
 */
#include "yardstick.h"

SEC("struct_ops") void on_cong_avoid(u64 *ctx) {}

YARDSTICK("nothing");
