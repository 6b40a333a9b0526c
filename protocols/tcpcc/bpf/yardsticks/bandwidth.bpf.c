/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The estimate of bandwidth.h by itself: a call is an ACK, or a silence. */
#include "../bandwidth.h"

struct call {
	struct bandwidth bandwidth;
	u64 now_us;
	u64 bytes; /* 0: a silence */
};

SEC("syscall") int note(struct call *c)
{
	if (c->bytes)
		note_ack(&c->bandwidth, c->now_us, c->bytes);
	else
		note_silence(&c->bandwidth, c->now_us);
	return 0;
}
