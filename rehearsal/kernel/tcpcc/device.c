// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/tcpcc puts the programs of protocols/tcpcc/bpf in force that are
 * compiled into this kernel. It does what the links of BPF do elsewhere: what
 * was written to an open file holds until the file is closed, by whatever end
 * of the process. One line, once a file:
 *
 *   congestion PROGRAM NAME [MAP]      makes PROGRAM a congestion control called
 *                                      NAME; MAP is a file descriptor of the
 *                                      reference TCP's map of causes
 *   events COOKIE MAP RING             tells what the connections in MAP of a
 *                                      network namespace do about losses, to RING
 *
 * Reading, which everybody may, gives the SHA-256 of the list of the programs' sources.
 *
 * There is one processor, and nothing preempts the kernel: an interrupt may
 * come in the middle of a program, and has ended before it goes on.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/sock_diag.h>
#include <linux/timekeeping.h>
#include <net/tcp.h>

#include "program.h"
#include "sources.h"
#include "tracepoints.h"

#define PROGRAMS(each) each(tahoe) each(reno) each(newreno) each(fack) each(vegas) \
	each(westwood) each(reference) each(vegas1995) each(westwood2001)

#define DECLARE(program) extern struct tcpcc_program tcpcc_##program##_ops;
PROGRAMS(DECLARE)

static const struct {
	const char *name;
	const struct tcpcc_program *program;
} programs[] = {
#define LIST(program) { #program, &tcpcc_##program##_ops },
	PROGRAMS(LIST)
};

/* What a file has put in force. */
struct instance {
	struct list_head list;
	struct tcp_congestion_ops ops; /* of a congestion control */
	const struct tcpcc_program *program;
	bool in_force;
	struct bpf_map *map;  /* of causes, or of connections */
	struct bpf_map *ring; /* of events */
	u64 cookie;
	u32 told;
};

static DEFINE_MUTEX(lock);

/*
 * Congestion controls are kept when their file is closed, and used again under
 * the same name: connections may have them for longer.
 */
static LIST_HEAD(congestion_controls);

/* Whose program runs now. */
static struct instance *now;

#define RUN(whose, call) do { \
	struct instance *was_ = now; \
	rcu_read_lock(); \
	now = (whose); \
	call; \
	now = was_; \
	rcu_read_unlock(); \
} while (0)

static struct instance *of(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct instance, ops);
}

#define CALL(sk, callback, ...) do { \
	u64 ctx_[] = { (unsigned long)(sk), ##__VA_ARGS__ }; \
	RUN(of(sk), now->program->callback(ctx_)); \
} while (0)

static void call_init(struct sock *sk) { CALL(sk, init); }
static void call_cong_avoid(struct sock *sk, u32 ack, u32 acked) { CALL(sk, cong_avoid, ack, acked); }
static void call_set_state(struct sock *sk, u8 state) { CALL(sk, set_state, state); }
static void call_cwnd_event(struct sock *sk, enum tcp_ca_event event) { CALL(sk, cwnd_event, event); }
static void call_in_ack_event(struct sock *sk, u32 flags) { CALL(sk, in_ack_event, flags); }

static void call_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	CALL(sk, pkts_acked, (unsigned long)sample);
}

static void call_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	CALL(sk, cong_control, ack, flag, (unsigned long)rs);
}

static u32 call_ssthresh(struct sock *sk)
{
	u64 ctx[] = { (unsigned long)sk };
	u32 ssthresh;

	RUN(of(sk), ssthresh = now->program->ssthresh(ctx));
	return ssthresh;
}

static u32 call_undo_cwnd(struct sock *sk)
{
	u64 ctx[] = { (unsigned long)sk };
	u32 cwnd;

	RUN(of(sk), cwnd = now->program->undo_cwnd(ctx));
	return cwnd;
}

static void fill(struct tcp_congestion_ops *to, const struct tcpcc_program *p, const char *name)
{
#define TAKE(callback) to->callback = p->callback ? call_##callback : NULL
	TAKE(init);
	TAKE(ssthresh);
	TAKE(cong_avoid);
	TAKE(set_state);
	TAKE(cwnd_event);
	TAKE(in_ack_event);
	TAKE(pkts_acked);
	TAKE(cong_control);
	TAKE(undo_cwnd);
	to->flags = p->flags;
	strscpy(to->name, name);
}

void *tcpcc_map_lookup(void *map, const void *key)
{
	return now->map ? now->map->ops->map_lookup_elem(now->map, (void *)key) : NULL;
}

u64 tcpcc_socket_cookie(void *sk) { return sock_gen_cookie(sk); }

struct tcp_sock *tcpcc_to_tcp(const void *at)
{
	const struct sock *sk = at;

	if (!sk_fullsock(sk) || sk->sk_type != SOCK_STREAM || sk->sk_protocol != IPPROTO_TCP)
		return NULL;
	return (struct tcp_sock *)tcp_sk(sk);
}

long tcpcc_read_kernel(void *to, u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

u64 tcpcc_boot_ns(void) { return ktime_get_boot_fast_ns(); }

void *tcpcc_reserve(void *ring, u64 size, u64 flags)
{
	return (void *)(unsigned long)bpf_ringbuf_reserve_proto.func((unsigned long)now->ring, size, flags, 0, 0);
}

void tcpcc_submit(void *data, u64 flags) { bpf_ringbuf_submit_proto.func((unsigned long)data, flags, 0, 0, 0); }

/* The programs of events.bpf.c and their variables. */
int tcpcc_events_retransmitted(u64 *ctx);
int tcpcc_events_state_set(u64 *ctx);
extern u64 tcpcc_events_namespace_cookie;
extern u32 tcpcc_events_tells_failure, tcpcc_events_told;

/* Those who want to be told. */
static LIST_HEAD(traces);

static void tell(int (*program)(u64 *), u64 *ctx)
{
	struct instance *i;

	if (list_empty(&traces))
		return;
	local_bh_disable(); /* a softirq would change the variables */
	rcu_read_lock();
	list_for_each_entry_rcu(i, &traces, list) {
		tcpcc_events_namespace_cookie = i->cookie;
		tcpcc_events_told = i->told;
		RUN(i, program(ctx));
		i->told = tcpcc_events_told;
	}
	rcu_read_unlock();
	local_bh_enable();
}

void tcpcc_retransmitted(const struct sock *sk, const struct sk_buff *skb, int err)
{
	u64 ctx[] = { (unsigned long)sk, (unsigned long)skb, err };

	tcpcc_events_tells_failure = 1; /* where there are none, err is 0 */
	tell(tcpcc_events_retransmitted, ctx);
}

void tcpcc_state_set(struct sock *sk, u8 state)
{
	u64 ctx[] = { (unsigned long)sk, state };

	tell(tcpcc_events_state_set, ctx);
}

/* map is that of a file descriptor, which must be of a type and such a layout. */
static struct bpf_map *map(int fd, enum bpf_map_type type, u32 key_size, u32 value_size)
{
	struct bpf_map *m = bpf_map_get(fd);

	if (IS_ERR(m) || (m->map_type == type && m->key_size == key_size && m->value_size == value_size))
		return m;
	bpf_map_put(m);
	return ERR_PTR(-EINVAL);
}

static struct instance *known(const struct tcpcc_program *program, const char *name)
{
	struct instance *i;

	list_for_each_entry(i, &congestion_controls, list)
		if (i->program == program && !strcmp(i->ops.name, name))
			return i;
	i = kzalloc(sizeof(*i), GFP_KERNEL);
	if (!i)
		return NULL;
	i->program = program;
	fill(&i->ops, program, name);
	list_add(&i->list, &congestion_controls);
	return i;
}

static int congestion(struct file *file, const char *line)
{
	const struct tcpcc_program *program = NULL;
	char wanted[16], name[TCP_CA_NAME_MAX];
	struct bpf_map *causes = NULL, *before;
	int fd, error, n, given;
	struct instance *i;

	given = sscanf(line, "congestion %15s %15s %d", wanted, name, &fd);
	if (given < 2)
		return -EINVAL;
	for (n = 0; n < ARRAY_SIZE(programs); n++)
		if (!strcmp(programs[n].name, wanted))
			program = programs[n].program;
	if (!program)
		return -ENOENT;
	if (given == 3)
		causes = map(fd, BPF_MAP_TYPE_LRU_HASH, 8, 4); /* of causes.h */
	if (IS_ERR(causes))
		return PTR_ERR(causes);
	i = known(program, name);
	error = !i ? -ENOMEM : i->in_force ? -EEXIST : tcp_register_congestion_control(&i->ops);
	if (error) {
		if (causes)
			bpf_map_put(causes);
		return error;
	}
	before = i->map;
	i->map = causes;
	if (before) {
		synchronize_rcu();
		bpf_map_put(before);
	}
	i->in_force = true;
	file->private_data = i;
	return 0;
}

static int trace(struct file *file, const char *line)
{
	int sockets, ring, error;
	struct instance *i = kzalloc(sizeof(*i), GFP_KERNEL);

	if (!i)
		return -ENOMEM;
	error = -EINVAL;
	if (sscanf(line, "events %llu %d %d", &i->cookie, &sockets, &ring) != 3)
		goto free;
	i->map = map(sockets, BPF_MAP_TYPE_HASH, 4, 1); /* of events.bpf.c */
	error = PTR_ERR_OR_ZERO(i->map);
	if (error)
		goto free;
	i->ring = map(ring, BPF_MAP_TYPE_RINGBUF, 0, 0);
	error = PTR_ERR_OR_ZERO(i->ring);
	if (error)
		goto put_map;
	list_add_rcu(&i->list, &traces);
	file->private_data = i;
	return 0;
put_map:
	bpf_map_put(i->map);
free:
	kfree(i);
	return error;
}

static ssize_t device_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char line[96];
	int error;

	if (size >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, size))
		return -EFAULT;
	line[size] = 0;
	mutex_lock(&lock);
	if (file->private_data)
		error = -EBUSY;
	else if (!strncmp(line, "congestion ", 11))
		error = congestion(file, line);
	else
		error = trace(file, line);
	mutex_unlock(&lock);
	return error ? error : size;
}

static ssize_t device_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	return simple_read_from_buffer(to, size, at, SOURCES_SHA256, sizeof(SOURCES_SHA256) - 1);
}

static int device_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL;
	return 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	struct instance *i = file->private_data;

	if (!i)
		return 0;
	mutex_lock(&lock);
	if (i->program) {
		tcp_unregister_congestion_control(&i->ops);
		i->in_force = false;
	} else {
		list_del_rcu(&i->list);
		synchronize_rcu();
		bpf_map_put(i->ring);
		bpf_map_put(i->map);
		kfree(i);
	}
	mutex_unlock(&lock);
	return 0;
}

static const struct file_operations operations = {
	.open = device_open,
	.read = device_read,
	.write = device_write,
	.release = device_release,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tcpcc",
	.fops = &operations,
	.mode = 0644,
};

builtin_misc_device(device);
