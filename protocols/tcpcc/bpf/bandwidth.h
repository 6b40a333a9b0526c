/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The bandwidth that Westwood estimates from ACKs: Mascolo, Casetti, Gerla,
 * Sanadidi and Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport
 * over Wireless Links", MobiCom 2001, section 2.2. An ACK at t[k] for d[k] bytes
 * is a sample b[k] = d[k] / (t[k] - t[k-1]), where t[k-1] is the time of the
 * ACK before. A low-pass filter of time constant tau, made discrete by Tustin's
 * rule, takes the samples as they come, D apart:
 *
 *     B[k] = ((2 tau - D) B[k-1] + D (b[k] + b[k-1])) / (2 tau + D)
 *
 * When no ACK comes for tau / m (m >= 2), a virtual sample of 0 is taken. What
 * is left of a silence after its virtual samples is a sample of its own unless
 * it is shorter than 10 ms: so has it the authors' module for ns-2
 * (tcp-westwood.cc, v1.3, 2002), whose m is 2.
 *
 * Unit and range. Bandwidth is in 1/256 byte a second. A division cuts off less
 * than one unit, which the filter makes less than tau / 256 bytes of each ACK's:
 * 0.002 byte, however slow or fast the ACKs are. A sample is bounded to 2^42
 * units, 137 Gbit/s, so that no product is beyond 2^63.
 */
#ifndef TCPCC_BANDWIDTH_H
#define TCPCC_BANDWIDTH_H

#include "kernel.h"

#define TAU_US 500000
#define VIRTUAL_US (TAU_US / 2)
#define REST_MIN_US 10000
#define UNITS 256
#define SAMPLE_MAX ((u64)1 << 42)
#define SECOND_US 1000000
/* A virtual sample leaves 3/5 of an estimate: after so many, of 2^42 nothing is left. */
#define VIRTUAL_MAX 64

struct bandwidth {
	u64 filtered;   /* B[k] */
	u64 sample;     /* b[k] */
	u64 acked_us;   /* when the last ACK came */
	u64 sampled_us; /* when the last sample was taken, virtual ones too */
	u64 bytes;      /* acknowledged since acked_us: in the same microsecond */
};

INLINE void open_bandwidth(struct bandwidth *b, u64 now_us)
{
	__builtin_memset(b, 0, sizeof(*b));
	b->acked_us = b->sampled_us = now_us;
}

INLINE void take_sample(struct bandwidth *b, u64 sample, u64 apart_us)
{
	b->filtered = ((2 * TAU_US - apart_us) * b->filtered + apart_us * (sample + b->sample)) /
		(2 * TAU_US + apart_us);
	b->sample = sample;
	b->sampled_us += apart_us;
}

/* Takes the virtual samples of a silence up to now. */
INLINE void note_silence(struct bandwidth *b, u64 now_us)
{
	for (int i = 0; i < VIRTUAL_MAX; i++) {
		if (now_us - b->sampled_us < VIRTUAL_US + REST_MIN_US)
			return;
		take_sample(b, 0, VIRTUAL_US);
	}
	b->sampled_us = now_us - (now_us - b->sampled_us) % VIRTUAL_US;
}

/* Takes the sample of an ACK. */
INLINE void note_ack(struct bandwidth *b, u64 now_us, u64 bytes)
{
	u64 spent_us = now_us - b->acked_us, sample;

	b->bytes += bytes;
	if (!spent_us)
		return;
	note_silence(b, now_us);
	sample = b->bytes * SECOND_US * UNITS / spent_us;
	if (sample > SAMPLE_MAX)
		sample = SAMPLE_MAX;
	take_sample(b, sample, now_us - b->sampled_us);
	b->acked_us = now_us;
	b->bytes = 0;
}

INLINE u64 bytes_per_s(const struct bandwidth *b) { return b->filtered / UNITS; }

#endif
