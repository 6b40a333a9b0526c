/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Has the two tracepoints that events.bpf.c hangs on call it: this kernel is
 * built without tracepoints. It is included before all else in the files that
 * have them.
 */
#include <linux/version.h>
#include <net/tcp.h>
#include <trace/events/tcp.h>

void tcpcc_retransmitted(const struct sock *sk, const struct sk_buff *skb, int err);
void tcpcc_state_set(struct sock *sk, u8 state);

#define trace_tcp_cong_state_set tcpcc_state_set
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0) /* from there on it tells of failures too */
#define trace_tcp_retransmit_skb tcpcc_retransmitted
#else
#define trace_tcp_retransmit_skb(sk, skb) tcpcc_retransmitted(sk, skb, 0)
#endif
