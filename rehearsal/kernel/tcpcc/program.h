/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs and device.c have in common. */
#ifndef TCPCC_PROGRAM_H
#define TCPCC_PROGRAM_H

#include <linux/types.h>

struct sock;
struct tcp_sock;

/* A program's callbacks; a callback's arguments lie in an array of 64-bit words. */
struct tcpcc_program {
	u32 flags;
	void (*init)(u64 *ctx);
	u32 (*ssthresh)(u64 *ctx);
	void (*cong_avoid)(u64 *ctx);
	void (*set_state)(u64 *ctx);
	void (*cwnd_event)(u64 *ctx);
	void (*in_ack_event)(u64 *ctx);
	void (*pkts_acked)(u64 *ctx);
	void (*cong_control)(u64 *ctx);
	u32 (*undo_cwnd)(u64 *ctx);
	char name[16];
};

/* The helpers, by what the programs call them. */
void *tcpcc_map_lookup(void *map, const void *key);
u64 tcpcc_socket_cookie(void *sk);
struct tcp_sock *tcpcc_to_tcp(const void *sk);
long tcpcc_read_kernel(void *to, u32 size, const void *from);
u64 tcpcc_boot_ns(void);
void *tcpcc_reserve(void *ring, u64 size, u64 flags);
void tcpcc_submit(void *data, u64 flags);

#endif
