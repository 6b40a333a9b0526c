/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reno: RFC 2581, section 3.2. The first ACK of new data ends fast recovery
 * with cwnd = ssthresh, even when it acknowledges a part only. What else was
 * lost from the window is not retransmitted then: it waits for three more
 * duplicate ACKs or for the timer. Here that is done by a window that lets
 * nothing go while the stack, which knows NewReno only, would.
 *
 * Reno would send new data in that time if its window let it; this one does
 * not, for the stack would retransmit first. With two losses or more the
 * flight is as a rule larger than the halved window, and nothing could be sent.
 *
 * With SACK there is nothing to withhold: the stack's recovery is that of RFC
 * 6675 (RACK's from 6.17), which is what "Reno with SACK" means.
 */
#include "window.h"

#define VARIANT "reno"

INLINE u32 reduced(struct sock *sk) { return half_flight(sk); }

INLINE void on_timeout(struct sock *sk, struct window *w) { w->cwnd = 1; }

/* The next hole is held back; three duplicate ACKs begin another fast retransmit. */
INLINE void withhold(struct sock *sk, struct window *w, enum ack kind)
{
	struct tcp_sock *tp = TCP(sk);

	w->dupacks = kind == ACK_REPEATED ? w->dupacks + 1 : 0;
	if (w->dupacks < DUPTHRESH) {
		set_cwnd(sk, in_network(tp));
		return;
	}
	w->withheld = 0;
	w->dupacks = 0;
	tp->snd_ssthresh = half_flight(sk);
	w->cwnd = tp->snd_ssthresh;
	set_cwnd(sk, max(w->cwnd, in_network(tp) + 1));
}

INLINE void on_ack(struct sock *sk, struct window *w, enum ack kind)
{
	if (kind == ACK_FULL || kind == ACK_ENTRY)
		w->withheld = 0;
	if (kind == ACK_PARTIAL && !BITS(TCP(sk), rx_opt.sack_ok)) {
		w->withheld = 1;
		w->cwnd = TCP(sk)->snd_ssthresh;
	}
	if (w->withheld)
		withhold(sk, w, kind);
	else
		newreno_ack(sk, w, kind);
}

#include "callbacks.h"
