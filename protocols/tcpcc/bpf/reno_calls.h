/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The callbacks in which a variant is the kernel's reno: how far a loss halves
 * the window, and what a false alarm gives back.
 */
#ifndef TCPCC_RENO_CALLS_H
#define TCPCC_RENO_CALLS_H

#include "kernel.h"

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) SEC(".ksyms");
extern u32 tcp_reno_ssthresh(struct sock *sk) SEC(".ksyms");
extern u32 tcp_reno_undo_cwnd(struct sock *sk) SEC(".ksyms");

SEC("struct_ops") u32 on_ssthresh(u64 *ctx) { return tcp_reno_ssthresh(SOCK_ARG(ctx)); }

SEC("struct_ops") u32 on_undo_cwnd(u64 *ctx) { return tcp_reno_undo_cwnd(SOCK_ARG(ctx)); }

#endif
