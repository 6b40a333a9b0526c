package drops

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Counter reads how often a network namespace's kernel had no route.
type Counter struct {
	netns    uint64
	snmp     *os.File
	extended *os.File
}

// OpenCounter opens the counters of the calling thread's network namespace.
// They can then be read from everywhere.
func OpenCounter() (*Counter, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return nil, fmt.Errorf("find own network namespace: %w", err)
	}
	c := &Counter{netns: st.Ino}
	var err error
	if c.snmp, err = os.Open("/proc/thread-self/net/snmp"); err != nil {
		return nil, fmt.Errorf("open the kernel's counters: %w", err)
	}
	if c.extended, err = os.Open("/proc/thread-self/net/netstat"); err != nil {
		return nil, errors.Join(fmt.Errorf("open the kernel's counters: %w", err), c.Close())
	}
	return c, nil
}

// Netns is the inode of the namespace.
func (c *Counter) Netns() uint64 { return c.netns }

// NoRoute is how many packets, and attempts to make one, had no route since
// the namespace was made: its own (OutNoRoutes of RFC 4293, section 3.2.3) and
// those that it should have forwarded (InNoRoutes). It does not say which
// interface they would have left by: without a route there is none.
func (c *Counter) NoRoute() (uint64, error) {
	out, err := read(c.snmp, "Ip", "OutNoRoutes")
	if err != nil {
		return 0, err
	}
	in, err := read(c.extended, "IpExt", "InNoRoutes")
	return out + in, err
}

// Close gives the counters back; nil is no counter.
func (c *Counter) Close() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.snmp.Close(), c.extended.Close())
}

func read(f *os.File, table, name string) (uint64, error) {
	buf := make([]byte, 16<<10) // both files have about 4 KB
	n, err := f.ReadAt(buf, 0)
	if n == 0 {
		return 0, fmt.Errorf("read the kernel's counters: %w", err)
	}
	v, err := find(string(buf[:n]), table, name)
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", f.Name(), err)
	}
	return v, nil
}

// find reads one value of the format of /proc/net/snmp: two lines a table, the
// names and the values, both begun with the table's name (proc(5)).
func find(text, table, name string) (uint64, error) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != table+":" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n != name || i >= len(fields) {
				continue
			}
			v, err := strconv.ParseUint(fields[i], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("decode counter %q: %w", name, err)
			}
			return v, nil
		}
	}
	return 0, fmt.Errorf("find counter %q of %q: it is not there", name, table)
}
