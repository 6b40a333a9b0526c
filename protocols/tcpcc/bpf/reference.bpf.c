/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reference TCP of Fu, Meng and Lu, "How Bad TCP Can Perform in Mobile Ad
 * Hoc Networks", ISCC 2002: it knows why each segment was lost.
 *
 *   third duplicate ACK: congestion - NewReno; channel error - retransmit, no
 *   slowing down; route change - slow start, ssthresh as it was.
 *   timeout: congestion - slow start, the timer backs off; disconnection and
 *   channel error - probe at a fixed interval and go on as before; route
 *   change - the same slow start, no backing off.
 *
 * What the paper does not name (duplicate ACKs after a disconnection) and what
 * nobody told counts as congestion. The timer is rto.bpf.c's; its interval is
 * the timeout itself and at least a second, not the round trip of the paper,
 * because no kernel takes less (TCP_RTO_MAX_MS).
 *
 * Only an emulated radio can tell causes: this variant exists in rehearsal only.
 */
#include "window.h"
#include "causes.h"

#define VARIANT "reference"

INLINE u32 first_cause(struct sock *sk)
{
	const struct sock_common *c = (const struct sock_common *)sk;

	return cause_of(TCP(sk)->snd_una, c->skc_num, __builtin_bswap16(c->skc_dport));
}

INLINE u32 reduced(struct sock *sk)
{
	struct window *w = PRIV(sk, window);

	w->cause = first_cause(sk);
	w->halved = w->cause == CAUSE_CONGESTION;
	return w->halved ? half_flight(sk) : TCP(sk)->snd_ssthresh;
}

/*
 * The stack asks for ssthresh once a loss, and not where a timeout has another cause
 * than what began it. NewReno, too, halves once.
 */
INLINE void halve(struct sock *sk, struct window *w)
{
	if (!w->halved)
		TCP(sk)->snd_ssthresh = half_flight(sk);
	w->halved = 1;
}

/* The stack calls it again at every further timeout. */
INLINE void on_timeout(struct sock *sk, struct window *w)
{
	w->cause = first_cause(sk);
	if (w->cause == CAUSE_CONGESTION || w->cause == CAUSE_ROUTE_CHANGE) {
		halve(sk, w);
		w->cwnd = 1;
	}
}

/* What an ACK does in a recovery that is not from congestion. */
INLINE void unslowed(struct sock *sk, struct window *w, enum ack kind)
{
	u32 cwnd;

	if (kind == ACK_ENTRY && w->cause == CAUSE_ROUTE_CHANGE)
		w->cwnd = 1;
	if (w->cause == CAUSE_ROUTE_CHANGE && (kind == ACK_PARTIAL || kind == ACK_FULL))
		grow(sk, w);
	cwnd = w->cwnd;
	if (kind == ACK_ENTRY || kind == ACK_PARTIAL)
		cwnd = max(cwnd, in_network(TCP(sk)) + 1);
	set_cwnd(sk, cwnd);
}

/*
 * Whether duplicate ACKs after the loss of the first hole slow the sender down.
 * After a disconnection they do, and a timeout does not: reduced() cannot tell
 * which of the two it is asked for, an ACK can. With SACK the hole may have gone again.
 */
INLINE int slows(struct sock *sk)
{
	const struct sock_common *c = (const struct sock_common *)sk;
	u32 *cause = told_of(TCP(sk)->snd_una, c->skc_num, __builtin_bswap16(c->skc_dport));

	return !cause || (*cause != CAUSE_CHANNEL_ERROR && *cause != CAUSE_EARLIER_CHANNEL_ERROR &&
			  *cause != CAUSE_ROUTE_CHANGE);
}

INLINE void on_ack(struct sock *sk, struct window *w, enum ack kind)
{
	int recovering = kind == ACK_ENTRY || kind == ACK_REPEATED || kind == ACK_PARTIAL || kind == ACK_FULL;

	/* A partial ACK's hole is another matter than the first. */
	if ((kind == ACK_ENTRY && w->cause == CAUSE_DISCONNECTION) ||
	    (kind == ACK_PARTIAL && w->cause != CAUSE_CONGESTION && slows(sk))) {
		w->cause = CAUSE_CONGESTION;
		halve(sk, w);
	}
	if (!recovering || w->cause == CAUSE_CONGESTION)
		newreno_ack(sk, w, kind);
	else
		unslowed(sk, w, kind);
}

#include "callbacks.h"
