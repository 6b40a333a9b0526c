package testnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is what processes have had of a processor, in all of their
// threads that still are: the first number of each one's schedstat.
func ProcessorTime(t *testing.T, pids ...int) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(threads) == 0 {
			t.Fatalf("no threads of process %d: %v", pid, err)
		}
		for _, path := range threads {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // a thread that has ended
			}
			ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ns)
		}
	}
	return sum
}

// Memory is a process's memory in megabytes: all that is in memory, and what of
// it no other process can have and no file gives back.
func Memory(t *testing.T, pid int) (resident, private float64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) float64 {
		_, after, _ := strings.Cut(string(text), "\n"+name+":")
		kb, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		return kb * 1024 / 1e6
	}
	return read("Rss"), read("Private_Dirty")
}

// Processes are those of a name in the namespace.
func (n *NS) Processes(t *testing.T, name string) (out []int) {
	t.Helper()
	for _, field := range strings.Fields(n.Run(t, "ip", "netns", "pids", n.Name)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && strings.TrimSpace(string(comm)) == name {
			out = append(out, pid)
		}
	}
	return out
}

// TCPInfo is what the kernel knows of a connection.
func TCPInfo(c *net.TCPConn) (info *unix.TCPInfo, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	cerr := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info, errors.Join(cerr, err)
}

// BootNs is the boot clock, which every process of the machine shares.
func BootNs() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // the clock is there since Linux 2.6.39
	}
	return ts.Nano()
}
