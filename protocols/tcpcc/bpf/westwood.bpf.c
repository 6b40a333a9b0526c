/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Westwood+: Mascolo, Grieco and others, "Performance Evaluation and Comparison
 * of Westwood+, New Reno and Vegas TCP Congestion Control", CCR 34(2), 2004.
 * Reno's growth; the bandwidth is estimated from what was acknowledged in each
 * round trip, by two low-pass filters, and after a loss
 *
 *     ssthresh = bandwidth * least round trip
 *
 * The filters' weights, the 50 ms below which no sample is taken, and when the
 * window is set are those of Linux's own module, so that one may stand for the
 * other. Recovery is the stack's.
 */
#include "reno_calls.h"

#define SAMPLE_MIN_US 50000
/*
 * Bandwidth is in bytes a tick, as in the module, whose tick is a jiffy: 4 ms at
 * the HZ of Debian's and Android's kernels. The filters cut off what is less
 * than one, and so end up to 7 below what they filter.
 */
#define TICK_US 4000
#define RTT_FIRST_US 20000000 /* until a round trip is known: long */
#define SSTHRESH_MIN 2
#define IN_ACK_SLOWPATH 1 /* CA_ACK_SLOWPATH of net/tcp.h */

struct westwood {
	u64 began_us;     /* of the present sample */
	u32 narrow;       /* bytes a tick after the first filter */
	u32 bandwidth;    /* and after the second */
	u32 bytes;        /* acknowledged in the present sample */
	u32 una;          /* snd_una at the last ACK */
	u32 accounted;    /* bytes that duplicate ACKs have stood for */
	u32 rtt_us;
	u32 least_us;     /* least round trip */
	u32 started;
	u32 forget_least; /* the path may be another after a timeout */
};

/* The stack's own clock, which it reads anew for every ACK. */
INLINE u64 now_us(struct sock *sk) { return TCP(sk)->tcp_mstamp; }

INLINE u32 low_pass(u32 old, u32 sample) { return ((u64)old * 7 + sample) >> 3; }

SEC("struct_ops") void on_init(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);
	struct westwood *w = PRIV(sk, westwood);

	__builtin_memset(w, 0, sizeof(*w));
	w->rtt_us = w->least_us = RTT_FIRST_US;
	w->began_us = now_us(sk);
	w->una = TCP(sk)->snd_una;
}

SEC("struct_ops") void on_pkts_acked(u64 *ctx)
{
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];

	if (sample->rtt_us > 0)
		PRIV(SOCK_ARG(ctx), westwood)->rtt_us = sample->rtt_us;
}

/* close_sample ends the present sample when it is a round trip long. */
INLINE void close_sample(struct sock *sk, struct westwood *w)
{
	u64 now = now_us(sk), spent = now - w->began_us;
	u32 rate;

	if (!w->started) {
		w->una = TCP(sk)->snd_una; /* the handshake is no data */
		w->started = 1;
	}
	if (spent <= max(w->rtt_us, SAMPLE_MIN_US))
		return;
	rate = (u64)w->bytes * TICK_US / spent;
	if (!w->narrow && !w->bandwidth) {
		w->narrow = w->bandwidth = rate;
	} else {
		w->narrow = low_pass(w->narrow, rate);
		w->bandwidth = low_pass(w->bandwidth, w->narrow);
	}
	w->bytes = 0;
	w->began_us = now;
}

/*
 * What an ACK tells to have arrived. A duplicate stands for one segment; the
 * ACK that acknowledges it later must not count it again.
 */
INLINE u32 arrived(struct sock *sk, struct westwood *w)
{
	u32 mss = TCP(sk)->mss_cache, bytes = TCP(sk)->snd_una - w->una;

	if (!bytes) {
		w->accounted += mss;
		bytes = mss;
	} else if (bytes > mss && w->accounted >= bytes) {
		w->accounted -= bytes;
		bytes = mss;
	} else if (bytes > mss) {
		bytes -= w->accounted;
		w->accounted = 0;
	}
	w->una = TCP(sk)->snd_una;
	return bytes;
}

SEC("struct_ops") void on_in_ack_event(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);
	struct westwood *w = PRIV(sk, westwood);
	u32 flags = (u32)ctx[1];

	close_sample(sk, w);
	if (flags & IN_ACK_SLOWPATH) {
		w->bytes += arrived(sk, w);
	} else {
		w->bytes += TCP(sk)->snd_una - w->una;
		w->una = TCP(sk)->snd_una;
	}
	if (w->forget_least) {
		w->least_us = w->rtt_us;
		w->forget_least = 0;
	} else {
		w->least_us = min(w->least_us, w->rtt_us);
	}
}

/* bandwidth * least round trip, in segments */
INLINE u32 pipe(struct sock *sk)
{
	const struct westwood *w = PRIV(sk, westwood);
	u64 bytes = (u64)w->bandwidth * w->least_us / TICK_US;

	return max(bytes / max(TCP(sk)->mss_cache, 1), SSTHRESH_MIN);
}

SEC("struct_ops") void on_cwnd_event(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);
	struct tcp_sock *tp = TCP(sk);

	switch ((u32)ctx[1]) {
	case EVENT_COMPLETE_CWR:
		tp->snd_ssthresh = pipe(sk);
		tp->snd_cwnd = min(tp->snd_ssthresh, tp->snd_cwnd_clamp);
		break;
	case EVENT_LOSS:
		tp->snd_ssthresh = pipe(sk);
		PRIV(sk, westwood)->forget_least = 1;
		break;
	}
}

SEC("struct_ops") void on_cong_avoid(u64 *ctx)
{
	tcp_reno_cong_avoid(SOCK_ARG(ctx), (u32)ctx[1], (u32)ctx[2]);
}

SEC(".struct_ops.link") struct tcp_congestion_ops ops = {
	.flags = NON_RESTRICTED,
	.init = (void *)on_init,
	.ssthresh = (void *)on_ssthresh,
	.cong_avoid = (void *)on_cong_avoid,
	.cwnd_event = (void *)on_cwnd_event,
	.in_ack_event = (void *)on_in_ack_event,
	.pkts_acked = (void *)on_pkts_acked,
	.undo_cwnd = (void *)on_undo_cwnd,
	.name = "westwood",
};
