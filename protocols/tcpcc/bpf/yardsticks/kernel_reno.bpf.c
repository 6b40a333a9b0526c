/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's reno called by a program: beside nothing.bpf.c, what the
 * kernel's own function takes.
 */
#include "yardstick.h"

SEC("struct_ops") void on_cong_avoid(u64 *ctx)
{
	tcp_reno_cong_avoid(SOCK_ARG(ctx), (u32)ctx[1], (u32)ctx[2]);
}

YARDSTICK("kernel_reno");
