package testnet

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Received are readings of what an interface has received, in order.
type Received []reading

type reading struct {
	bootNs int64
	bytes  uint64
}

// Receives reads an interface's counter of received bytes at an interval, until the function
// that it returns is called, which gives the readings.
func (n *NS) Receives(t testing.TB, link string, every time.Duration) (end func() Received) {
	t.Helper()
	ns, err := netns.GetFromName(n.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	stop, readings := make(chan struct{}), make(chan Received, 1)
	go func() {
		defer h.Close()
		var out Received
		for t.Context().Err() == nil {
			l, err := h.LinkByName(link)
			if err != nil {
				t.Error(err)
				readings <- nil
				return
			}
			out = append(out, reading{BootNs(), l.Attrs().Statistics.RxBytes})
			select {
			case <-stop:
				readings <- out
				return
			case <-t.Context().Done():
			case <-time.After(every):
			}
		}
	}()
	return func() Received { close(stop); return <-readings }
}

// within bounds what came between two moments by the readings next to them.
func (r Received) within(openNs, closeNs int64) (least, most uint64) {
	at := func(ns int64) (before, after uint64) {
		i := sort.Search(len(r), func(i int) bool { return r[i].bootNs >= ns })
		if i == 0 || i == len(r) {
			return 0, 0
		}
		return r[i-1].bytes, r[i].bytes
	}
	openBefore, openAfter := at(openNs)
	closeBefore, closeAfter := at(closeNs)
	return closeBefore - openAfter, closeAfter - openBefore
}

// Holds holds the megabytes that a receiver's records say arrived in a window against the
// interface.
func (r Received) Holds(megabytes float64, w wire.Window) error {
	// A segment's headers are 66 bytes (Ethernet 14, IPv4 20, TCP with time stamps 32) of
	// 1,514, and less of what the sender's kernel gives the cable undivided.
	const headers, edges = 66.0 / 1448, 0.01
	least, most := r.within(w.OpenBootNs, w.CloseBootNs)
	got := megabytes * 1e6
	if got <= 0 || got > float64(most)*(1+edges) || got*(1+headers) < float64(least)*(1-edges) {
		return fmt.Errorf("%.4f MB by the records cannot be: the interface received %.4f to %.4f MB with headers",
			megabytes, float64(least)/1e6, float64(most)/1e6)
	}
	return nil
}
