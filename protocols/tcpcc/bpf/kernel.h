/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the programs here use of the kernel: a few members of a few of its
 * types. Offsets come from the running kernel's BTF when an object is loaded
 * (CO-RE), so only names and types matter, neither order nor gaps; a whole
 * vmlinux.h would add three megabytes and no safety.
 */
#ifndef TCPCC_KERNEL_H
#define TCPCC_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define INLINE static __attribute__((always_inline)) inline
/* A function of the kernel's by its number (enum bpf_func_id of linux/bpf.h). */
#define HELPER(type, name, number, ...) static type (*const name)(__VA_ARGS__) = (void *)(number)
/* What the loader fills in. */
#define VARIABLE(type, name, value) const volatile type name = value

/* The kernel takes struct_ops programs under a licence that fits the GPL only. */
char _license[] SEC("license") = "Dual MIT/GPL";

struct sk_buff {
	char cb[48];
} CORE;

struct tcp_skb_cb {
	u32 seq;
	u16 tcp_gso_segs;
} CORE;

struct netns_ipv4 {
	int sysctl_tcp_pacing_ss_ratio; /* percent */
	int sysctl_tcp_pacing_ca_ratio;
} CORE;

struct net {
	u64 net_cookie;
	struct netns_ipv4 ipv4;
} CORE;

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport; /* network byte order */
	u16 skc_num;
	u16 skc_family;
	u8 skc_state;
	struct {
		struct net *net;
	} skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} CORE;

struct sock {
	unsigned long sk_pacing_rate; /* bytes a second */
	unsigned long sk_max_pacing_rate;
} CORE;

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13]; /* 104 bytes since 4.10 */
} CORE;

struct tcp_options_received {
	u16 sack_ok : 3;
} CORE;

struct tcp_sock {
	u64 tcp_mstamp; /* microseconds */
	u32 snd_una;
	u32 snd_nxt;
	u32 high_seq;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 packets_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 lost_out;
	u32 sacked_out;
	u32 delivered;
	u32 srtt_us;
	u8 is_cwnd_limited : 1;
	struct tcp_options_received rx_opt;
	struct sk_buff *highest_sack;
} CORE;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
} CORE;

struct rate_sample;

/* enum tcp_ca_state and enum tcp_ca_event of net/tcp.h: user-visible numbers. */
enum { CA_OPEN, CA_DISORDER, CA_CWR, CA_RECOVERY, CA_LOSS };
enum { EVENT_TX_START, EVENT_CWND_RESTART, EVENT_COMPLETE_CWR, EVENT_LOSS };

/* TCP_CONG_NON_RESTRICTED: may be a namespace's default. */
#define NON_RESTRICTED 1

/*
 * cong_control is declared without arguments here: it has (sk, rate_sample)
 * up to 6.9 and (sk, ack, flag, rate_sample) from 6.10. What is here reads its
 * first argument only, which both have, so that one object serves both. With
 * four it is proved on 6.12 and 6.18; with two, on 6.4 to 6.9, it is not proved.
 */
struct tcp_congestion_ops {
	u32 flags;
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

/* Arguments lie in an array of 64-bit words, each checked by the verifier. */
#define SOCK_ARG(ctx) ((struct sock *)((ctx)[0]))
#define TCP(sk) ((struct tcp_sock *)(sk))
#define ICSK(sk) ((struct inet_connection_sock *)(sk))
#define PRIV(sk, type) ((struct type *)ICSK(sk)->icsk_ca_priv)

/*
 * A bit field's place is the kernel's business too. The kinds are those of
 * enum bpf_field_info_kind, the compiler's contract with the loader.
 */
enum { FIELD_OFFSET = 0, FIELD_SIZE = 1, FIELD_EXISTS = 2, FIELD_SIGNED = 3, FIELD_LSHIFT = 4, FIELD_RSHIFT = 5 };

#define BITS(from, field) ({ \
	const void *at_ = (const void *)(from) + __builtin_preserve_field_info((from)->field, FIELD_OFFSET); \
	u64 word_ = 0; \
	switch (__builtin_preserve_field_info((from)->field, FIELD_SIZE)) { \
	case 1: word_ = *(const u8 *)at_; break; \
	case 2: word_ = *(const u16 *)at_; break; \
	case 4: word_ = *(const u32 *)at_; break; \
	case 8: word_ = *(const u64 *)at_; break; \
	} \
	word_ <<= __builtin_preserve_field_info((from)->field, FIELD_LSHIFT); \
	word_ >>= __builtin_preserve_field_info((from)->field, FIELD_RSHIFT); \
	(u32)word_; })

/* Whether the kernel's type has a member. */
#define EXISTS(field) __builtin_preserve_field_info(field, FIELD_EXISTS)

INLINE u32 min(u32 a, u32 b) { return a < b ? a : b; }
INLINE u32 max(u32 a, u32 b) { return a > b ? a : b; }
/* Sequence numbers are compared modulo 2^32 (RFC 9293, section 3.4). */
INLINE int after(u32 a, u32 b) { return (s32)(b - a) < 0; }
INLINE int before(u32 a, u32 b) { return after(b, a); }

#endif
