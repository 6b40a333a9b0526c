/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Vegas: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a
 * Global Internet", JSAC 13(8), 1995. Once a round trip the segments queued in
 * the path are estimated, cwnd * (rtt - base) / base in terms of segments; cwnd
 * is moved by one to keep them between alpha and beta. In slow start cwnd grows
 * as in Reno and leaves it when more than gamma are queued.
 *
 * alpha, beta and gamma are those of Linux's own module, so that one may stand
 * for the other. After a loss it is Reno, with the stack's recovery, until the
 * state is open again; retransmission is the stack's.
 */
#include "reno_calls.h"

#define ALPHA 2
#define BETA 4
#define GAMMA 1
#define CWND_MIN 2
#define NO_RTT 0x7fffffff

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) SEC(".ksyms");

struct vegas {
	u32 base_us;   /* least round trip of the connection */
	u32 least_us;  /* least round trip of this round */
	u32 samples;   /* in this round */
	u32 round_end; /* snd_nxt at the round's beginning */
	u32 on;
};

INLINE void begin_round(struct sock *sk, struct vegas *v)
{
	v->round_end = TCP(sk)->snd_nxt;
	v->samples = 0;
	v->least_us = NO_RTT;
}

INLINE void begin(struct sock *sk)
{
	struct vegas *v = PRIV(sk, vegas);

	v->on = 1;
	begin_round(sk, v);
}

SEC("struct_ops") void on_init(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);

	PRIV(sk, vegas)->base_us = NO_RTT;
	begin(sk);
}

SEC("struct_ops") void on_pkts_acked(u64 *ctx)
{
	struct vegas *v = PRIV(SOCK_ARG(ctx), vegas);
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	s32 rtt = sample->rtt_us;

	if (rtt < 0)
		return;
	v->base_us = min(v->base_us, (u32)rtt + 1); /* never 0: it is divided by */
	v->least_us = min(v->least_us, (u32)rtt + 1);
	v->samples++;
}

/*
 * The module begins a round when a segment goes while nothing is under way: what
 * was before says nothing of it. From Linux 7.1 a program is not told of that
 * (CA_EVENT_TX_START), but when nothing is under way any more it sees itself.
 */
INLINE int nothing_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out == 0;
}

SEC("struct_ops") void on_set_state(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);
	u8 state = (u8)ctx[1];

	if (state == CA_OPEN || (state == CA_LOSS && nothing_in_flight(TCP(sk))))
		begin(sk);
	else
		PRIV(sk, vegas)->on = 0;
}

SEC("struct_ops") void on_cwnd_event(u64 *ctx)
{
	if ((u32)ctx[1] == EVENT_CWND_RESTART)
		begin(SOCK_ARG(ctx));
}

/* Leaving slow start, or shrinking: not below ssthresh, or it would be slow start again. */
INLINE void cap_ssthresh(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_ssthresh = min(tp->snd_ssthresh, cwnd);
}

INLINE void adjust(struct tcp_sock *tp, const struct vegas *v, u32 acked)
{
	u32 cwnd = tp->snd_cwnd, rtt = v->least_us, base = v->base_us;
	u64 target = (u64)cwnd * base / rtt; /* what fills the path with no queue */
	u32 queued = (u64)cwnd * (rtt - base) / base;

	if (cwnd < tp->snd_ssthresh && queued > GAMMA) {
		cwnd = min(cwnd, (u32)target + 1);
		cap_ssthresh(tp, cwnd);
	} else if (cwnd < tp->snd_ssthresh) {
		tcp_slow_start(tp, acked);
		return;
	} else if (queued > BETA) {
		cwnd--;
		cap_ssthresh(tp, cwnd);
	} else if (queued < ALPHA) {
		cwnd++;
	}
	tp->snd_cwnd = min(max(cwnd, CWND_MIN), tp->snd_cwnd_clamp);
	/* The stack's tcp_current_ssthresh: at least three quarters of cwnd. */
	tp->snd_ssthresh = max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

INLINE void avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = TCP(sk);
	struct vegas *v = PRIV(sk, vegas);

	if (!v->on) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!after(ack, v->round_end)) {
		if (tp->snd_cwnd < tp->snd_ssthresh)
			tcp_slow_start(tp, acked);
		return;
	}
	/* With few samples the least of them may be a delayed ACK's. */
	if (v->samples <= 2)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		adjust(tp, v, acked);
	begin_round(sk, v);
}

SEC("struct_ops") void on_cong_avoid(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);

	avoid(sk, (u32)ctx[1], (u32)ctx[2]);
	if (nothing_in_flight(TCP(sk)))
		begin(sk);
}

SEC(".struct_ops.link") struct tcp_congestion_ops ops = {
	.flags = NON_RESTRICTED,
	.init = (void *)on_init,
	.ssthresh = (void *)on_ssthresh,
	.cong_avoid = (void *)on_cong_avoid,
	.set_state = (void *)on_set_state,
	.cwnd_event = (void *)on_cwnd_event,
	.pkts_acked = (void *)on_pkts_acked,
	.undo_cwnd = (void *)on_undo_cwnd,
	.name = "vegas",
};
