/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The window of the classic variants, in segments as Linux counts.
 *
 * Linux compares snd_cwnd with the segments that it believes to be in the
 * network: packets_out - sacked_out - lost_out + retrans_out. Without SACK it
 * counts a segment into sacked_out for each duplicate ACK. So the inflation of
 * RFC 5681, section 3.2 (one segment more for each duplicate ACK, against all
 * that is outstanding) is there when snd_cwnd stays at ssthresh; and since the
 * window gates retransmissions too, the one that fast retransmit demands at
 * once needs snd_cwnd one above what is in the network.
 *
 * The variant's own window is therefore kept apart, in icsk_ca_priv, and
 * snd_cwnd is derived from it after every ACK.
 */
#ifndef TCPCC_WINDOW_H
#define TCPCC_WINDOW_H

#include "kernel.h"

#define SSTHRESH_MIN 2 /* RFC 5681, equation (4) */
#define DUPTHRESH 3    /* RFC 5681, section 3.2 */

struct window {
	u32 cwnd;      /* the variant's own */
	u32 credit;    /* ACKs since the last growth in congestion avoidance */
	u32 una;       /* snd_una at the last ACK */
	u32 high;      /* high_seq then: another one is another recovery */
	u32 state;     /* icsk_ca_state then */
	u32 over;      /* recovery is over, though the stack has not left its state */
	u32 restarted; /* the stack has cut snd_cwnd after an idle time */
	u32 withheld;  /* Reno: a partial ACK came, and the next hole is not retransmitted */
	u32 dupacks;   /* Reno: duplicate ACKs since then */
	u32 cause;     /* reference TCP: of the loss under repair */
	u32 halved;    /* reference TCP: ssthresh has been, since that loss */
	u32 kept;      /* ssthresh before the stack took a recovery back; 0: it has not */
};

INLINE u32 in_network(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/*
 * RFC 5681, equation (4): half of FlightSize, at least two segments; what
 * limited transmit sent beyond the window is not to be counted (section 3.2).
 */
INLINE u32 half_flight(struct sock *sk)
{
	const struct tcp_sock *tp = TCP(sk);
	const struct window *w = PRIV(sk, window);

	return max(min(tp->packets_out, max(w->cwnd, 1)) >> 1, SSTHRESH_MIN);
}

/* A window that is not used up does not grow: it would say nothing of the path (RFC 7661). */
INLINE int used_up(struct sock *sk, u32 cwnd)
{
	const struct tcp_sock *tp = TCP(sk);

	if (cwnd < tp->snd_ssthresh)
		return cwnd < 2 * tp->max_packets_out;
	return BITS(tp, is_cwnd_limited);
}

/*
 * RFC 5681, section 3.1: in slow start one segment for each ACK of new data, in
 * congestion avoidance one for each window of them. ACKs are counted and not
 * bytes, as the variants' time did; delaying ACKs slows growth down.
 */
INLINE void grow(struct sock *sk, struct window *w)
{
	if (!used_up(sk, w->cwnd))
		return;
	if (w->cwnd < TCP(sk)->snd_ssthresh) {
		w->cwnd++;
		return;
	}
	if (++w->credit >= w->cwnd) {
		w->credit = 0;
		w->cwnd++;
	}
}

INLINE void set_cwnd(struct sock *sk, u32 cwnd)
{
	struct tcp_sock *tp = TCP(sk);

	tp->snd_cwnd = max(min(cwnd, tp->snd_cwnd_clamp), 1);
}

INLINE void open_window(struct sock *sk)
{
	struct window *w = PRIV(sk, window);

	__builtin_memset(w, 0, sizeof(*w));
	w->cwnd = TCP(sk)->snd_cwnd;
	w->una = TCP(sk)->snd_una;
}

/* What an ACK is to the variants. */
enum ack {
	ACK_NEW,       /* it acknowledges new data, outside of recovery */
	ACK_DUPLICATE, /* it does not, outside of recovery */
	ACK_ENTRY,     /* recovery begins with it: the third duplicate */
	ACK_REPEATED,  /* a duplicate in recovery */
	ACK_PARTIAL,   /* new data in recovery, not all (RFC 6582) */
	ACK_FULL,      /* it ends recovery */
	ACK_TIMEOUT,   /* new data after a timeout */
};

/*
 * read_ack tells what the present ACK is, and remembers where it was. Without
 * SACK the stack stays in its state of recovery until more than high_seq is
 * acknowledged, lest old duplicates begin another (RFC 6582, section 4.1); for
 * the window recovery is over before.
 */
INLINE enum ack read_ack(struct sock *sk, struct window *w)
{
	const struct tcp_sock *tp = TCP(sk);
	u32 state = BITS(ICSK(sk), icsk_ca_state), was = w->state;
	int advanced = after(tp->snd_una, w->una);
	enum ack kind = advanced ? ACK_NEW : ACK_DUPLICATE;

	if (state != CA_RECOVERY || w->high != tp->high_seq)
		w->over = 0;
	if (state == CA_LOSS)
		kind = advanced ? ACK_TIMEOUT : ACK_DUPLICATE;
	else if (state == CA_RECOVERY && (was != CA_RECOVERY || w->high != tp->high_seq))
		kind = ACK_ENTRY;
	else if (state == CA_RECOVERY && before(tp->snd_una, tp->high_seq))
		kind = advanced ? ACK_PARTIAL : ACK_REPEATED;
	else if (was == CA_RECOVERY && !w->over)
		kind = ACK_FULL;
	if (kind == ACK_FULL)
		w->over = 1;
	w->state = state;
	w->high = tp->high_seq;
	w->una = tp->snd_una;
	return kind;
}

/* The window of RFC 6582 at an ACK. */
INLINE void newreno_ack(struct sock *sk, struct window *w, enum ack kind)
{
	const struct tcp_sock *tp = TCP(sk);
	u32 cwnd;

	switch (kind) {
	case ACK_ENTRY:
	case ACK_PARTIAL:
		w->cwnd = tp->snd_ssthresh;
		w->credit = 0;
		cwnd = max(w->cwnd, in_network(tp) + 1); /* the retransmission goes at once */
		break;
	case ACK_REPEATED:
		cwnd = w->cwnd;
		break;
	case ACK_FULL:
		w->cwnd = tp->snd_ssthresh;
		cwnd = w->cwnd;
		break;
	case ACK_NEW:
	case ACK_TIMEOUT:
		grow(sk, w);
		cwnd = w->cwnd;
		break;
	default:
		return;
	}
	set_cwnd(sk, cwnd);
}

#endif
