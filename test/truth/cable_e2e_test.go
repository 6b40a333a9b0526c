//go:build e2e

package truth

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"golang.org/x/sys/unix"
)

// cableBps is slow enough that what is cut off matters, and quick enough for
// 1 % of a window to be many packets.
const cableBps = 8e6

// cable joins two nodes' interfaces under test, and can be cut: frames then
// vanish, and neither end is told, as when a car drives away.
type cable struct {
	ends [2]*os.File
	cut  atomic.Bool
	// before cuts the cable at the first segment from one of the ports, before
	// it has passed; from 0 there is none.
	firstPort, lastPort atomic.Int64
}

// newCable makes wlan0 in both nodes.
func newCable(t *testing.T, nodes [2]*testnet.NS) *cable {
	t.Helper()
	c := &cable{}
	for i, ns := range nodes {
		ns.Do(t, func() (err error) { c.ends[i], err = openTAP("wlan0"); return err })
		ns.Up(t, "wlan0", "")
	}
	var group sync.WaitGroup
	for i := range c.ends {
		group.Go(func() { c.carry(c.ends[i], c.ends[1-i]) })
	}
	t.Cleanup(func() {
		if err := errors.Join(c.ends[0].Close(), c.ends[1].Close()); err != nil {
			t.Error(err)
		}
		group.Wait()
	})
	return c
}

func openTAP(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// carry takes frames from one end to the other, until the test ends.
func (c *cable) carry(from, to *os.File) {
	frame, free := make([]byte, 2048), time.Now()
	for {
		n, err := from.Read(frame)
		if err != nil {
			return // closed: the test has ended
		}
		if first := c.firstPort.Load(); first != 0 {
			s, ok := dissect(frame[:n])
			if port := int64(s.from.Port()); ok && port >= first && port <= c.lastPort.Load() {
				c.cut.Store(true)
			}
		}
		if c.cut.Load() {
			continue
		}
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(float64(n*8) / cableBps * 1e9))
		if wait := time.Until(free); wait > time.Millisecond {
			time.Sleep(wait)
		}
		_, _ = to.Write(frame[:n]) // an interface that is down takes none
	}
}

// cutBefore arms the cable to be cut before the first segment from these ports.
func (c *cable) cutBefore(first, last int) {
	c.lastPort.Store(int64(last))
	c.firstPort.Store(int64(first))
}

// mend puts the cable back.
func (c *cable) mend() {
	c.firstPort.Store(0)
	c.cut.Store(false)
}
