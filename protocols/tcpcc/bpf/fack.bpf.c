/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * FACK: Mathis and Mahdavi, "Forward Acknowledgment: Refining TCP Congestion
 * Control", SIGCOMM 1996. In recovery the data outstanding in the network is
 *
 *     awnd = snd.nxt - snd.fack + retran_data
 *
 * where snd.fack is the forward-most byte that the receiver is known to hold:
 * every hole below it counts as having left. The sender may send while awnd <
 * cwnd. Linux counts a hole as in the network until it marks it lost, so
 * snd_cwnd is cwnd and the difference of the two counts.
 *
 * The stack's own: when recovery begins (its duplicate threshold or RACK; FACK
 * would begin once snd.fack - snd.una exceeds three segments), and which hole
 * goes next: the stack retransmits what it has marked lost, and a congestion
 * control cannot mark. Overdamping and Rampdown, the paper's refinements, are
 * not here, as they are off in ns-2 (ns-default.tcl: ss-div4_ and rampdown_).
 * It needs SACK.
 */
#include "window.h"

#define VARIANT "fack"

INLINE u32 reduced(struct sock *sk) { return half_flight(sk); }

INLINE void on_timeout(struct sock *sk, struct window *w) { w->cwnd = 1; }

/*
 * snd.fack: the stack keeps the first segment beyond the highest that was
 * SACKed, none when there is none; its first sequence number is the first word
 * of the segment's control block (struct tcp_skb_cb, since 2.6).
 */
INLINE u32 forward_most(const struct tcp_sock *tp)
{
	struct sk_buff *beyond = tp->highest_sack;

	if (!tp->sacked_out)
		return tp->snd_una;
	if (!beyond)
		return tp->snd_nxt;
	return *(u32 *)beyond->cb;
}

INLINE u32 outstanding(const struct tcp_sock *tp)
{
	u32 bytes = tp->snd_nxt - forward_most(tp);

	return (bytes + tp->mss_cache - 1) / max(tp->mss_cache, 1) + tp->retrans_out;
}

INLINE void on_ack(struct sock *sk, struct window *w, enum ack kind)
{
	const struct tcp_sock *tp = TCP(sk);
	u32 counted = in_network(tp), awnd;

	if (kind != ACK_ENTRY && kind != ACK_REPEATED && kind != ACK_PARTIAL) {
		newreno_ack(sk, w, kind);
		return;
	}
	w->cwnd = tp->snd_ssthresh;
	awnd = outstanding(tp);
	counted = counted > awnd ? w->cwnd + counted - awnd : w->cwnd;
	if (kind == ACK_ENTRY) {
		w->credit = 0;
		counted = max(counted, in_network(tp) + 1); /* fast retransmit */
	}
	set_cwnd(sk, counted);
}

#include "callbacks.h"
