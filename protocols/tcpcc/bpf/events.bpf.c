/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What chosen connections of one network namespace do about losses, as the
 * kernel's own tracepoints tell of it: each retransmission, time-out, and
 * recovery's beginning and end, with its moment. Everything else is passed over
 * here, in the kernel. No variant: it looks on and changes nothing.
 *
 * A time-out is each setting of the state "loss": the stack sets it at every
 * firing of the retransmission timer (tcp_enter_loss). Two rare things set it
 * too: a path that takes smaller packets only (tcp_simple_retransmit), and a
 * receiver that drops what it had SACKed.
 */
#include "kernel.h"

#define FAMILY_IPV6 10

enum { RETRANSMISSION = 1, FAILED_RETRANSMISSION, TIMEOUT, RECOVERY, RECOVERY_END };

/* In step with eventRecord of node-agent/tcp. */
struct event {
	u64 boot_ns;
	u64 cookie; /* the socket's */
	u32 number; /* from 0, so that a gap tells of events that found no room */
	u32 kind;
	u32 count; /* segments of a retransmission; else 1 */
	u32 seq;   /* of a retransmission's first byte; else the first that is not acknowledged */
	u32 cwnd;
	u32 ssthresh;
	u32 family;
	u16 local_port; /* both in the host's byte order */
	u16 remote_port;
	u8 local[16]; /* IPv4 addresses in the first four */
	u8 remote[16];
};

struct ports {
	u16 local; /* both in the host's byte order */
	u16 remote;
};

#define MAP_HASH 1 /* enum bpf_map_type */
#define MAP_RINGBUF 27
#define SOCKETS_MAX 8192
#define RING_BYTES 262144 /* some 2,900 events */

struct {
	int (*type)[MAP_HASH];
	int (*max_entries)[SOCKETS_MAX];
	struct ports *key;
	u8 *value;
} sockets SEC(".maps");

struct {
	int (*type)[MAP_RINGBUF];
	int (*max_entries)[RING_BYTES];
} events SEC(".maps");

HELPER(void *, map_lookup, 1, void *map, const void *key);
HELPER(u64, socket_cookie, 46, void *sk);
HELPER(struct tcp_sock *, to_tcp, 137, const void *sk); /* bpf_skc_to_tcp_sock */
HELPER(long, read_kernel, 113, void *to, u32 size, const void *from);
HELPER(u64, boot_ns, 125, void);
HELPER(void *, reserve, 131, void *ring, u64 size, u64 flags);
HELPER(void, submit, 132, void *data, u64 flags);

VARIABLE(u64, namespace_cookie, 0);
/* From Linux 6.17 on the tracepoint tells of failures too, by a third argument. */
VARIABLE(u32, tells_failure, 0);

u32 told = 0;

INLINE const struct sock_common *common(const struct sock *sk) { return (const struct sock_common *)sk; }

INLINE int chosen(const struct sock *sk)
{
	const struct sock_common *c = common(sk);
	struct ports key = { .local = c->skc_num, .remote = __builtin_bswap16(c->skc_dport) };

	return map_lookup(&sockets, &key) && c->skc_net.net->net_cookie == namespace_cookie;
}

INLINE void addresses(struct event *e, const struct sock_common *c)
{
	__builtin_memset(e->local, 0, sizeof(e->local));
	__builtin_memset(e->remote, 0, sizeof(e->remote));
	if (e->family == FAMILY_IPV6) {
		if (EXISTS(c->skc_v6_daddr)) {
			read_kernel(e->local, sizeof(e->local), &c->skc_v6_rcv_saddr);
			read_kernel(e->remote, sizeof(e->remote), &c->skc_v6_daddr);
		}
		return;
	}
	*(u32 *)e->local = c->skc_rcv_saddr;
	*(u32 *)e->remote = c->skc_daddr;
}

INLINE void tell(struct sock *sk, const struct tcp_sock *tp, u32 kind, u32 count, u32 seq)
{
	const struct sock_common *c = common(sk);
	u32 number = __sync_fetch_and_add(&told, 1);
	struct event *e = reserve(&events, sizeof(*e), 0);

	if (!e)
		return;
	e->boot_ns = boot_ns();
	e->cookie = socket_cookie(sk);
	e->number = number;
	e->kind = kind;
	e->count = count;
	e->seq = seq;
	e->cwnd = tp->snd_cwnd;
	e->ssthresh = tp->snd_ssthresh;
	e->family = c->skc_family;
	e->local_port = c->skc_num;
	e->remote_port = __builtin_bswap16(c->skc_dport);
	addresses(e, c);
	submit(e, 0);
}

SEC("tp_btf/tcp_retransmit_skb") int retransmitted(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct sk_buff *skb = (const struct sk_buff *)ctx[1];
	const struct tcp_skb_cb *cb = (const struct tcp_skb_cb *)skb->cb;
	const struct tcp_sock *tp = chosen(sk) ? to_tcp(sk) : 0;
	int failed = tells_failure && (s32)ctx[2];

	if (tp)
		tell(sk, tp, failed ? FAILED_RETRANSMISSION : RETRANSMISSION, cb->tcp_gso_segs, cb->seq);
	return 0;
}

/* The state is set after this; until then the socket has its former one. */
SEC("tp_btf/tcp_cong_state_set") int state_set(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct tcp_sock *tp = chosen(sk) ? to_tcp(sk) : 0;
	u8 is = ctx[1];
	u32 was, kind = 0;

	if (!tp)
		return 0;
	was = BITS(ICSK(tp), icsk_ca_state);
	if (is == CA_LOSS)
		kind = TIMEOUT;
	else if (is == CA_RECOVERY && was != CA_RECOVERY)
		kind = RECOVERY;
	else if (is < CA_RECOVERY && was >= CA_RECOVERY)
		kind = RECOVERY_END;
	if (kind)
		tell(sk, tp, kind, 1, tp->snd_una);
	return 0;
}
