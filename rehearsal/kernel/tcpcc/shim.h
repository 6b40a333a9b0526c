/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands in place of kernel.h of protocols/tcpcc/bpf, so that the programs
 * there are compiled into this kernel as they are: its types are the kernel's
 * own, and what a program calls of the kernel is called directly.
 */
#ifndef TCPCC_SHIM_H
#define TCPCC_SHIM_H

#define TCPCC_KERNEL_H /* leaves kernel.h out */

#include <linux/types.h>
#include <net/tcp.h>
#include "program.h"

#define SEC(name)
#define CORE
#define INLINE static __always_inline
#define VARIABLE(type, name, value) type name = value
#define HELPER(type, name, number, ...) static type (*const name)(__VA_ARGS__) = tcpcc_##name
#define EXISTS(field) 1
#define BITS(from, field) ((u32)(from)->field)

/* Names that every program has; they must differ within one kernel. */
#define PASTE(a, b) a##_##b
#define OWN_(program, name) PASTE(program, name)
#define OWN(name) OWN_(PROGRAM, name)
#define ops OWN(ops)
#define on_init OWN(on_init)
#define on_ssthresh OWN(on_ssthresh)
#define on_cong_avoid OWN(on_cong_avoid)
#define on_set_state OWN(on_set_state)
#define on_cwnd_event OWN(on_cwnd_event)
#define on_in_ack_event OWN(on_in_ack_event)
#define on_pkts_acked OWN(on_pkts_acked)
#define on_cong_control OWN(on_cong_control)
#define on_undo_cwnd OWN(on_undo_cwnd)
#define losses OWN(losses)
#define sockets OWN(sockets)
#define events OWN(events)
#define told OWN(told)
#define namespace_cookie OWN(namespace_cookie)
#define tells_failure OWN(tells_failure)
#define retransmitted OWN(retransmitted)
#define state_set OWN(state_set)

#define tcp_congestion_ops tcpcc_program

enum { CA_OPEN, CA_DISORDER, CA_CWR, CA_RECOVERY, CA_LOSS };
enum { EVENT_TX_START, EVENT_CWND_RESTART, EVENT_COMPLETE_CWR, EVENT_LOSS };
static_assert((int)CA_LOSS == TCP_CA_Loss && (int)EVENT_LOSS == CA_EVENT_LOSS);

#define NON_RESTRICTED TCP_CONG_NON_RESTRICTED

#define SOCK_ARG(ctx) ((struct sock *)(unsigned long)((ctx)[0]))
#define TCP(sk) ((struct tcp_sock *)(sk))
#define ICSK(sk) ((struct inet_connection_sock *)(sk))
#define PRIV(sk, type) ((struct type *)ICSK(sk)->icsk_ca_priv)

/* Of 32 bits, as kernel.h has them, and not of whatever type they are given. */
#undef min
#undef max
INLINE u32 tcpcc_min(u32 a, u32 b) { return a < b ? a : b; }
INLINE u32 tcpcc_max(u32 a, u32 b) { return a > b ? a : b; }
#define min tcpcc_min
#define max tcpcc_max

#endif
