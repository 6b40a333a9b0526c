/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the programs of a control group's sockets share: the kernel's context,
 * and which connections are ours, those of one network namespace with peers in
 * one network.
 */
#ifndef TCPCC_SOCKOPS_H
#define TCPCC_SOCKOPS_H

#include "kernel.h"

/* struct bpf_sock_ops of linux/bpf.h: the kernel's interface, so its layout is fixed. */
struct sock_ops {
	u32 op;
	u32 args[4];
	u32 family;
	u32 remote_ip4; /* network byte order */
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port; /* network byte order, in all 32 bits */
	u32 local_port;  /* host byte order */
	u32 is_fullsock;
	u32 snd_cwnd;
	u32 srtt_us;
	u32 cb_flags;
	u32 state;
	u32 rtt_min;
	u32 snd_ssthresh;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 mss_cache;
};

enum {
	OP_TCP_CONNECT = 3,
	OP_ACTIVE_ESTABLISHED = 4,
	OP_PASSIVE_ESTABLISHED = 5,
	OP_RTO = 8,
	OP_RETRANSMISSION = 9,
	OP_RTT = 12,
};

#define FAMILY_IPV4 2
#define LEVEL_TCP 6

static long (*const setsockopt)(void *ctx, int level, int name, void *value, int size) = (void *)49;
static u64 (*const netns_cookie)(void *ctx) = (void *)122;

const volatile u64 namespace_cookie = 0;
const volatile u32 network = 0; /* of the peers, network byte order */
const volatile u32 netmask = 0;

/* Every program of the control group sees every connection that one of them asked about. */
INLINE int ours(struct sock_ops *ctx)
{
	return ctx->family == FAMILY_IPV4 && (ctx->remote_ip4 & netmask) == network && netns_cookie(ctx) == namespace_cookie;
}

#endif
