/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Timers that do not back off, for the connections of one network namespace
 * with peers in one network.
 *
 * fixed: the fixed RTO of Dyer and Boppana, "A Comparison of TCP Performance
 * over Three Routing Protocols for Mobile Ad Hoc Networks", MobiHoc 2001: on a
 * second timeout in a row the RTO is not doubled again, until an ACK has told a
 * round trip anew. Their simulator has no handshake, and its first packet has
 * this timer: so a SYN has it too, and goes after 1 s, and then every 2 s.
 *
 * reference: where the cause of the loss is none of congestion, the RTO is not
 * doubled at all (reference.bpf.c).
 *
 * The RTO cannot be written; its bound can, from Linux 6.15 (TCP_RTO_MAX_MS),
 * and not below a second. So the namespace's tcp_rto_min_us must be at least
 * half a second for fixed, and a second for reference, to be constant.
 *
 * The kernel gives a connection up after the time in which tcp_retries2 time-outs
 * would come, and reckons with that bound (tcp_model_timeout): with 255 of them
 * some five minutes instead of eight hours. So a held connection is given the
 * eight hours by TCP_USER_TIMEOUT. SYNs are counted besides, and no more than 127
 * can go again (MAX_TCP_SYNCNT): with the fixed RTO for 255 s.
 */
#include "causes.h"
#include "sockops.h"

enum { WANT_RTO = 1, WANT_RETRANSMISSION = 2, WANT_STATE = 4, WANT_RTT = 8 };

/*
 * The kernel counts time-outs in a row in eight bits (icsk_retransmits). That the
 * next one is told as the first is kept in a flag that asks for nothing else here.
 */
#define LAST_COUNTED 255
#define WRAPS WANT_STATE

#define SEGMENTS_AT_ONCE 64 /* more than a packet of 64 KiB has */

#define USER_TIMEOUT 18 /* TCP_USER_TIMEOUT of linux/tcp.h */
#define RTO_MAX_MS 44 /* TCP_RTO_MAX_MS of linux/tcp.h */
#define FLOOR_MS 1000 /* the least that it takes */
#define STANDARD_MS 120000
#define PATIENCE_MS (8 * 3600 * 1000)

static long (*const callbacks)(void *ctx, int flags) = (void *)59;

const volatile u32 tick_ns = 0; /* of the kernel's jiffies, in which it tells the RTO */
const volatile u32 reference = 0;

INLINE int bound(struct sock_ops *ctx, u32 ms)
{
	int value = ms < FLOOR_MS ? FLOOR_MS : ms > STANDARD_MS ? STANDARD_MS : ms;

	return setsockopt(ctx, LEVEL_TCP, RTO_MAX_MS, &value, sizeof(value));
}

INLINE void want(struct sock_ops *ctx, int flags)
{
	callbacks(ctx, reference ? flags | WANT_RETRANSMISSION : flags);
}

INLINE u16 remote_port(struct sock_ops *ctx) { return __builtin_bswap32(ctx->remote_port); }

/* The segments have gone again, after the reference TCP had asked why they were lost. */
INLINE void on_retransmission(struct sock_ops *ctx)
{
	u32 seq = ctx->args[0], segments = min(ctx->args[1], SEGMENTS_AT_ONCE);

	if (ctx->args[2]) /* they have not */
		return;
	for (u32 i = 0; i < segments; i++, seq += ctx->mss_cache) {
		u32 *cause = told_of(seq, ctx->local_port, remote_port(ctx));

		if (cause && *cause == CAUSE_CHANNEL_ERROR)
			*cause = CAUSE_EARLIER_CHANNEL_ERROR;
	}
}

INLINE void on_rto(struct sock_ops *ctx)
{
	u32 rto_ms = (u64)ctx->args[1] * tick_ns / 1000000;

	if (reference) {
		u32 cause = cause_of(ctx->snd_una, ctx->local_port, remote_port(ctx));

		bound(ctx, cause == CAUSE_CONGESTION ? STANDARD_MS : rto_ms);
		want(ctx, WANT_RTO | WANT_RTT);
	} else if (ctx->cb_flags & WRAPS) {
		want(ctx, WANT_RTO | WANT_RTT);
	} else if (!ctx->args[0] || !(ctx->cb_flags & WANT_RTT)) {
		/* The first time-out, or the first since a round trip was measured: a SACK tells one within an outage. */
		bound(ctx, 2 * rto_ms);
		want(ctx, WANT_RTO | WANT_RTT);
	} else if (ctx->args[0] == LAST_COUNTED) {
		want(ctx, WANT_RTO | WANT_RTT | WRAPS);
	}
}

INLINE void begin(struct sock_ops *ctx)
{
	int patience = PATIENCE_MS;

	setsockopt(ctx, LEVEL_TCP, USER_TIMEOUT, &patience, sizeof(patience));
	want(ctx, WANT_RTO);
}

SEC("sockops") int hold(struct sock_ops *ctx)
{
	if (!ours(ctx))
		return 1;
	switch (ctx->op) {
	case OP_TCP_CONNECT: /* the SYN is about to go */
		if (!reference)
			begin(ctx);
		break;
	case OP_ACTIVE_ESTABLISHED: /* the bound of the SYN's timer is not that of data */
		if (!reference)
			bound(ctx, STANDARD_MS);
		begin(ctx);
		break;
	case OP_PASSIVE_ESTABLISHED:
		begin(ctx);
		break;
	case OP_RTO:
		on_rto(ctx);
		break;
	case OP_RETRANSMISSION:
		if (reference)
			on_retransmission(ctx);
		break;
	case OP_RTT: /* a round trip was measured: all is as usual again */
		bound(ctx, STANDARD_MS);
		want(ctx, WANT_RTO);
		break;
	}
	return 1;
}
