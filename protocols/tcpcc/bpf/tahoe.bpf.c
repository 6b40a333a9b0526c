/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tahoe: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988, with fast
 * retransmit (RFC 2001, section 3). Any loss, by the third duplicate ACK as by
 * a timeout: ssthresh to half of the flight, cwnd to one segment, slow start.
 *
 * Tahoe's sender goes back to the lost segment and sends all that follows
 * again. The stack retransmits holes only; to fill one after another, a
 * partial ACK always lets one segment go.
 */
#include "window.h"

#define VARIANT "tahoe"

INLINE u32 reduced(struct sock *sk) { return half_flight(sk); }

INLINE void on_timeout(struct sock *sk, struct window *w) { w->cwnd = 1; }

INLINE void on_ack(struct sock *sk, struct window *w, enum ack kind)
{
	const struct tcp_sock *tp = TCP(sk);

	switch (kind) {
	case ACK_ENTRY:
		w->cwnd = 1;
		w->credit = 0;
		/* One more than is in the network, or the retransmission itself
		 * would have to wait. The next ACK sets it to cwnd. */
		set_cwnd(sk, in_network(tp) + 1);
		return;
	case ACK_REPEATED:
		break; /* no fast recovery: duplicates count for nothing */
	case ACK_PARTIAL:
		grow(sk, w);
		set_cwnd(sk, max(w->cwnd, in_network(tp) + 1));
		return;
	case ACK_FULL:
	case ACK_NEW:
	case ACK_TIMEOUT:
		grow(sk, w);
		break;
	default:
		return;
	}
	set_cwnd(sk, w->cwnd);
}

#include "callbacks.h"
