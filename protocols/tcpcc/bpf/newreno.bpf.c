/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * NewReno: RFC 5681 with the recovery of RFC 6582. A partial ACK has the next
 * hole retransmitted at once and recovery goes on; the full one leaves it with
 * cwnd = ssthresh, the second choice of RFC 6582, section 3.2, step 3.
 */
#include "window.h"

#define VARIANT "newreno"

INLINE u32 reduced(struct sock *sk) { return half_flight(sk); }

INLINE void on_timeout(struct sock *sk, struct window *w)
{
	w->cwnd = 1; /* the loss window of RFC 5681, section 3.1 */
}

INLINE void on_ack(struct sock *sk, struct window *w, enum ack kind) { newreno_ack(sk, w, kind); }

#include "callbacks.h"
