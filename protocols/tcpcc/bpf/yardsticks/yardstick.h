/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the programs of this folder share. They are for measuring only: what
 * the variants cost is told beside them. In a loss they do as the kernel's reno.
 */
#ifndef TCPCC_YARDSTICK_H
#define TCPCC_YARDSTICK_H

#include "../reno_calls.h"

#define YARDSTICK(called) \
	SEC(".struct_ops.link") struct tcp_congestion_ops ops = { \
		.flags = NON_RESTRICTED, \
		.ssthresh = (void *)on_ssthresh, \
		.cong_avoid = (void *)on_cong_avoid, \
		.undo_cwnd = (void *)on_undo_cwnd, \
		.name = called, \
	}

#endif
