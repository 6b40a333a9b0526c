/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Why segments were lost, as the emulated radio knows it: filled from user
 * space, read by the reference TCP and by its timer. A key is a segment as its
 * sender's socket knows it; the map belongs to one node, so that ports and
 * sequence number suffice.
 */
#ifndef TCPCC_CAUSES_H
#define TCPCC_CAUSES_H

#include "kernel.h"

/*
 * A cause that is not known counts as congestion. A bit error is one
 * transmission's: once the segment goes again it was that of an earlier one. That
 * there was no way stays true until something else is told of the segment: it may
 * wait in a node that looks for a way.
 */
enum {
	CAUSE_UNKNOWN,
	CAUSE_CONGESTION,
	CAUSE_CHANNEL_ERROR,
	CAUSE_DISCONNECTION,
	CAUSE_ROUTE_CHANGE,
	CAUSE_EARLIER_CHANNEL_ERROR, /* no user space tells it */
};

struct segment {
	u32 seq;
	u16 from_port; /* both in the host's byte order */
	u16 to_port;
};

#define MAP_LRU_HASH 9 /* enum bpf_map_type */
#define LOSSES_MAX 4096

struct {
	int (*type)[MAP_LRU_HASH];
	int (*max_entries)[LOSSES_MAX];
	struct segment *key;
	u32 *value;
} losses SEC(".maps");

HELPER(void *, map_lookup, 1, void *map, const void *key); /* bpf_map_lookup_elem */

INLINE u32 *told_of(u32 seq, u16 from_port, u16 to_port)
{
	struct segment key = { .seq = seq, .from_port = from_port, .to_port = to_port };

	return map_lookup(&losses, &key);
}

/* Why the last transmission of a segment was lost. */
INLINE u32 cause_of(u32 seq, u16 from_port, u16 to_port)
{
	u32 *cause = told_of(seq, from_port, to_port);

	return cause && *cause && *cause != CAUSE_EARLIER_CHANNEL_ERROR ? *cause : CAUSE_CONGESTION;
}

#endif
