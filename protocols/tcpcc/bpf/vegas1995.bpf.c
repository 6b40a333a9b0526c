/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Vegas as its authors and ns-2 have it: Brakmo and Peterson, "TCP Vegas: End
 * to End Congestion Avoidance on a Global Internet", JSAC 13(8), 1995, with
 * alpha 1 and beta 3 (their Vegas-1,3) and gamma 1, the defaults of ns-2.
 * Linux's Vegas, which vegas.bpf.c implements, has 2 and 4, and doubles its
 * window every round trip in slow start.
 *
 * Once a round trip the rates expected and actual are compared (section 4 and
 * tcp-vegas.cc of ns-2):
 *
 *     diff = in flight - sent in the round * base / mean round trip
 *
 * What the ACK that ends the round acknowledges was in flight until then, and counts
 * as such: ns-2 takes t_seqno_ - last_ack_, one more than is left.
 *
 * In congestion avoidance the window grows by a segment over the next round trip
 * when diff < alpha, shrinks by one when diff > beta, and stays else. In slow
 * start it doubles in every other round trip and stays in between, after which
 * diff > gamma ends slow start with an eighth less. After three duplicate ACKs
 * the window loses a quarter; after a timeout slow start begins with two
 * segments.
 *
 * Not here: the retransmission at the first or second duplicate ACK when the
 * fine-grained timer of the segment has expired, and after the first two ACKs
 * of new data that follow. A congestion control is told of ACKs and sets the
 * window; what is lost, and when it goes again, the stack decides alone.
 * Recovery is that of RFC 6582.
 */
#include "window.h"

#define VARIANT "vegas1995"

#define ALPHA 1
#define BETA 3
#define GAMMA 1
#define CWND_MIN 2
#define NO_RTT 0x7fffffff

enum growth { GROW_NOT, GROW_EACH_ACK, GROW_EACH_WINDOW };

struct vegas {
	struct window window;
	u64 began_us; /* this round */
	u64 sum_us;   /* of its round trips */
	u32 samples;
	u32 base_us;  /* least round trip */
	u32 begin;    /* snd_nxt at the round's beginning */
	u32 growth;
	u32 compares; /* in slow start: at the end of this round, or else of the next */
};

INLINE struct vegas *state(struct sock *sk) { return PRIV(sk, vegas); }

INLINE void begin_round(struct sock *sk)
{
	struct vegas *v = state(sk);

	v->begin = TCP(sk)->snd_nxt;
	v->began_us = TCP(sk)->tcp_mstamp;
	v->sum_us = 0;
	v->samples = 0;
}

INLINE void open_vegas(struct sock *sk)
{
	struct vegas *v = state(sk);

	open_window(sk);
	v->base_us = NO_RTT;
	v->growth = GROW_NOT;
	v->compares = 0;
	begin_round(sk);
}

SEC("struct_ops") void on_pkts_acked(u64 *ctx)
{
	struct vegas *v = state(SOCK_ARG(ctx));
	s32 rtt_us = ((const struct ack_sample *)ctx[1])->rtt_us;

	if (rtt_us <= 0)
		return;
	v->base_us = min(v->base_us, rtt_us);
	v->sum_us += rtt_us;
	v->samples++;
}

/* diff, to the nearest whole segment. */
INLINE u32 surplus(struct sock *sk)
{
	const struct tcp_sock *tp = TCP(sk);
	struct vegas *v = state(sk);
	u64 rtt_us = v->samples ? v->sum_us / v->samples : tp->tcp_mstamp - v->began_us, expected, actual;
	u32 sent = (tp->snd_nxt - v->begin + tp->mss_cache - 1) / max(tp->mss_cache, 1);

	if (!rtt_us || rtt_us >= NO_RTT)
		return 0;
	if (rtt_us < v->base_us || sent <= 1) /* alone it has met no queue of its own */
		v->base_us = rtt_us;
	expected = (in_network(tp) + 1) * rtt_us; /* with the segment that this ACK is of */
	actual = (u64)sent * v->base_us;
	return expected > actual ? (2 * (expected - actual) + rtt_us) / (2 * rtt_us) : 0;
}

INLINE void end_round(struct sock *sk)
{
	struct tcp_sock *tp = TCP(sk);
	struct vegas *v = state(sk);
	struct window *w = &v->window;
	u32 diff = surplus(sk);

	v->growth = GROW_NOT;
	if (w->cwnd < tp->snd_ssthresh) {
		if (v->compares && diff > GAMMA) {
			tp->snd_ssthresh = CWND_MIN;
			w->cwnd = max(w->cwnd - w->cwnd / 8, CWND_MIN);
		} else if (v->compares) {
			v->growth = GROW_EACH_ACK;
		}
		v->compares = !v->compares;
	} else if (diff > BETA) {
		w->cwnd = max(w->cwnd - 1, CWND_MIN);
	} else if (diff < ALPHA) {
		v->growth = GROW_EACH_WINDOW;
	}
	begin_round(sk);
}

INLINE u32 reduced(struct sock *sk)
{
	u32 cwnd = state(sk)->window.cwnd;

	return cwnd <= 3 ? CWND_MIN : cwnd - cwnd / 4;
}

/*
 * ns-2 leaves its growth (v_incr_) as it is until the round has ended: a round of
 * slow start in which the window grows goes on. In congestion avoidance it would
 * still grow by part of a segment in all, which is not here.
 */
INLINE void on_timeout(struct sock *sk, struct window *w)
{
	TCP(sk)->snd_ssthresh = half_flight(sk);
	w->cwnd = CWND_MIN;
	if (state(sk)->growth == GROW_EACH_WINDOW)
		state(sk)->growth = GROW_NOT;
	set_cwnd(sk, w->cwnd);
}

INLINE void on_ack(struct sock *sk, struct window *w, enum ack kind)
{
	struct vegas *v = state(sk);

	if (kind != ACK_NEW && kind != ACK_TIMEOUT) {
		newreno_ack(sk, w, kind);
		if (kind == ACK_FULL)
			TCP(sk)->snd_ssthresh = CWND_MIN; /* it counts in slow start only */
		return;
	}
	if (after(w->una, v->begin))
		end_round(sk);
	if (v->growth == GROW_EACH_WINDOW || (v->growth == GROW_EACH_ACK && w->cwnd < TCP(sk)->snd_ssthresh))
		grow(sk, w);
	w->cwnd = min(w->cwnd, TCP(sk)->snd_cwnd_clamp); /* what it cannot use says nothing */
	set_cwnd(sk, w->cwnd);
}

#define OPEN_VARIANT(sk) open_vegas(sk)
#define MORE_CALLBACKS .pkts_acked = (void *)on_pkts_acked,

#include "callbacks.h"
