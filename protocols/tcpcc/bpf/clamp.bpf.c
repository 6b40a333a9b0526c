/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The window of simulations, in packets: no more than so many segments of a
 * connection are in the network, whatever the receiver offers. ns-2 calls it
 * window_; a window in bytes (SO_RCVBUF) is neither exact nor in packets,
 * because the kernel counts what a segment takes of its memory.
 *
 * The bound is the kernel's own for the congestion window (snd_cwnd_clamp),
 * which is where slow start ends at first too, as in the simulator. A first
 * window that is larger is cut as well (RFC 6928: ten segments); a smaller one,
 * as after lost SYNs (RFC 5681, section 3.1), stays.
 */
#include "sockops.h"

#define FIRST_WINDOW 1001 /* TCP_BPF_IW of linux/bpf.h */
#define CWND_CLAMP 1002   /* TCP_BPF_SNDCWND_CLAMP */

const volatile u32 segments = 1;

SEC("sockops") int clamp(struct sock_ops *ctx)
{
	int most = segments;

	if (!ours(ctx) || (ctx->op != OP_ACTIVE_ESTABLISHED && ctx->op != OP_PASSIVE_ESTABLISHED))
		return 1;
	setsockopt(ctx, LEVEL_TCP, CWND_CLAMP, &most, sizeof(most));
	if (ctx->snd_cwnd > segments)
		setsockopt(ctx, LEVEL_TCP, FIRST_WINDOW, &most, sizeof(most));
	return 1;
}
