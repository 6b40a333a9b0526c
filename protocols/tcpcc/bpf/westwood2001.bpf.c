/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Westwood as it was first published: Mascolo and others, MobiCom 2001, and
 * Gerla and others, GLOBECOM 2001. Not Westwood+, which is what Linux calls
 * westwood and westwood.bpf.c implements: that one takes a sample a round trip.
 *
 * Growth is Reno's. Section 3: after three duplicate ACKs
 *
 *     ssthresh = bandwidth * least round trip, cwnd = min(cwnd, ssthresh)
 *
 * and after each timeout the same ssthresh, at least two segments, and cwnd = 1.
 *
 * Section 2.3 counts what an ACK stands for: a duplicate for one segment, an
 * ACK of new data for those that no duplicate stood for, and at least for one.
 * The stack counts so itself (tp->delivered), and does not take a segment with
 * data or another window for a duplicate.
 *
 * Recovery is that of RFC 6582: a partial ACK has the next hole retransmitted.
 */
#include "window.h"
#include "bandwidth.h"

#define VARIANT "westwood2001"

#define WINDOW_MAX (1 << 30) /* RFC 7323, section 2.3 */

struct westwood {
	struct window window;
	struct bandwidth bandwidth;
	u32 delivered; /* tp->delivered, of what has been noted */
	u32 least_us;  /* least round trip; 0: none is known */
};

INLINE struct westwood *state(struct sock *sk) { return PRIV(sk, westwood); }

INLINE void open_westwood(struct sock *sk)
{
	struct westwood *w = state(sk);

	open_window(sk);
	open_bandwidth(&w->bandwidth, TCP(sk)->tcp_mstamp);
	w->delivered = TCP(sk)->delivered;
	w->least_us = 0;
}

/* Notes what has been delivered up to now, or that nothing was. */
INLINE void estimate(struct sock *sk)
{
	struct westwood *w = state(sk);
	const struct tcp_sock *tp = TCP(sk);
	u32 segments = tp->delivered - w->delivered;

	w->delivered = tp->delivered;
	if (segments)
		note_ack(&w->bandwidth, tp->tcp_mstamp, (u64)segments * tp->mss_cache);
	else
		note_silence(&w->bandwidth, tp->tcp_mstamp);
}

INLINE u32 reduced(struct sock *sk)
{
	u64 bytes;

	estimate(sk);
	/* A round trip is below 2^29 us, so that the product is below 2^63. */
	bytes = bytes_per_s(&state(sk)->bandwidth) * min(state(sk)->least_us, 1 << 29) / SECOND_US;
	if (bytes > WINDOW_MAX)
		bytes = WINDOW_MAX;
	return max(bytes / max(TCP(sk)->mss_cache, 1), SSTHRESH_MIN);
}

/* At every timeout: the stack asks for ssthresh at the first of a loss only. */
INLINE void on_timeout(struct sock *sk, struct window *w)
{
	TCP(sk)->snd_ssthresh = reduced(sk);
	w->cwnd = 1;
}

INLINE void on_ack(struct sock *sk, struct window *w, enum ack kind)
{
	estimate(sk);
	if (kind == ACK_ENTRY) {
		w->cwnd = min(w->cwnd, TCP(sk)->snd_ssthresh);
		w->credit = 0;
	}
	if (kind == ACK_ENTRY || kind == ACK_PARTIAL)
		set_cwnd(sk, max(w->cwnd, in_network(TCP(sk)) + 1)); /* the retransmission goes at once */
	else if (kind == ACK_FULL)
		set_cwnd(sk, w->cwnd);
	else
		newreno_ack(sk, w, kind);
}

SEC("struct_ops") void on_pkts_acked(u64 *ctx)
{
	struct westwood *w = state(SOCK_ARG(ctx));
	s32 rtt_us = ((const struct ack_sample *)ctx[1])->rtt_us;

	if (rtt_us > 0 && (!w->least_us || (u32)rtt_us < w->least_us))
		w->least_us = rtt_us;
}

#define OPEN_VARIANT(sk) open_westwood(sk)
#define MORE_CALLBACKS .pkts_acked = (void *)on_pkts_acked,

#include "callbacks.h"
