/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The callbacks that the classic variants share. A variant's file defines
 * on_ack (what an ACK does to the window), reduced (ssthresh after a loss) and
 * on_timeout before it includes this, and VARIANT, its name. One that keeps more
 * than a window defines OPEN_VARIANT, which prepares that too, and MORE_CALLBACKS.
 */
#ifndef TCPCC_CALLBACKS_H
#define TCPCC_CALLBACKS_H

#include "window.h"

#ifndef OPEN_VARIANT
#define OPEN_VARIANT(sk) open_window(sk)
#endif
#ifndef MORE_CALLBACKS
#define MORE_CALLBACKS
#endif

#define STATE_SYN_RECV 3 /* TCP_SYN_RECV of net/tcp_states.h */

/*
 * The pacing rate, as the stack sets it where a variant has no cong_control
 * (tcp_update_pacing_rate of tcp_input.c): some percent of a window a round trip.
 * Without the packet scheduler fq nothing is paced by it. But by it the stack
 * decides how much may wait below the socket (TCP small queues), and how large a
 * burst is.
 */
INLINE void set_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = TCP(sk);
	const struct net *net = ((const struct sock_common *)sk)->skc_net.net;
	u64 rate = (u64)tp->mss_cache * max(tp->snd_cwnd, tp->packets_out) * 8 * (1000000 / 100);

	if (tp->snd_cwnd < tp->snd_ssthresh / 2)
		rate *= (u32)net->ipv4.sysctl_tcp_pacing_ss_ratio;
	else
		rate *= (u32)net->ipv4.sysctl_tcp_pacing_ca_ratio;
	if (tp->srtt_us) /* in eighths */
		rate /= tp->srtt_us;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
}

SEC("struct_ops") void on_init(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);

	OPEN_VARIANT(sk);
	/* As in the stack, whoever accepted the connection has a rate before the first ACK. */
	if (((const struct sock_common *)sk)->skc_state == STATE_SYN_RECV)
		set_pacing_rate(sk);
}

SEC("struct_ops") u32 on_ssthresh(u64 *ctx) { return reduced(SOCK_ARG(ctx)); }

/*
 * The classic variants know of no false alarm: what was reduced stays so. After
 * this the stack puts the former ssthresh back by itself, which is infinite at the
 * first loss (tcp_undo_cwnd_reduction); on_cong_control takes that back.
 */
SEC("struct_ops") u32 on_undo_cwnd(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);

	PRIV(sk, window)->kept = TCP(sk)->snd_ssthresh;
	return max(TCP(sk)->snd_cwnd, 1);
}

SEC("struct_ops") void on_set_state(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);
	struct window *w = PRIV(sk, window);

	if ((u8)ctx[1] != CA_LOSS)
		return;
	w->credit = 0;
	w->withheld = 0;
	on_timeout(sk, w);
}

SEC("struct_ops") void on_cwnd_event(u64 *ctx)
{
	if ((u32)ctx[1] == EVENT_CWND_RESTART)
		PRIV(SOCK_ARG(ctx), window)->restarted = 1;
}

SEC("struct_ops") void on_cong_control(u64 *ctx)
{
	struct sock *sk = SOCK_ARG(ctx);
	struct window *w = PRIV(sk, window);
	u32 was = w->state;
	enum ack kind = read_ack(sk, w);

	if (w->kept) { /* least of both: there may have been a timeout since */
		TCP(sk)->snd_ssthresh = min(TCP(sk)->snd_ssthresh, w->kept);
		w->kept = 0;
	}
	if (w->restarted) {
		w->restarted = 0;
		w->cwnd = min(w->cwnd, TCP(sk)->snd_cwnd); /* RFC 5681, section 4.1 */
	}
	if (w->state == CA_CWR && was != CA_CWR) {
		/* A local queue was full, or ECN said so (RFC 3168, section 6.1.2). */
		w->cwnd = min(w->cwnd, TCP(sk)->snd_ssthresh);
		set_cwnd(sk, w->cwnd);
	}
	on_ack(sk, w, kind);
	set_pacing_rate(sk);
}

SEC(".struct_ops.link") struct tcp_congestion_ops ops = {
	.flags = NON_RESTRICTED,
	.init = (void *)on_init,
	.ssthresh = (void *)on_ssthresh,
	.set_state = (void *)on_set_state,
	.cwnd_event = (void *)on_cwnd_event,
	.cong_control = (void *)on_cong_control,
	.undo_cwnd = (void *)on_undo_cwnd,
	MORE_CALLBACKS
	.name = VARIANT,
};

#endif
