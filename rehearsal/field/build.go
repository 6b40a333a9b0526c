package field

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/rehearsal/drops"
	"fieldmesh.dev/fieldmesh/rehearsal/gps"
	"fieldmesh.dev/fieldmesh/rehearsal/hwsim"
)

// builders is how many threads make namespaces at a time. The kernel makes
// links under one lock, so that more than a few only wait for each other.
const builders = 4

// build makes namespaces, links, GPS lines and the nodes' folders.
func (f *Field) build() error {
	if err := shareNames(); err != nil {
		return err
	}
	f.thread = newThread()
	if err := f.thread.create(f.ctlNS, func() error { return createControl(controlAddr(f.ledger.ID, 1)) }); err != nil {
		return fmt.Errorf("create control network: %w", err)
	}
	control, err := netns.GetFromName(f.ctlNS)
	if err != nil {
		return fmt.Errorf("open control network: %w", err)
	}
	defer control.Close()
	faceUID, faceGID, err := account(f.cfg.FaceUser)
	if err != nil {
		return err
	}
	if f.uid, f.gid, err = account("gpsd"); err != nil {
		f.uid, f.gid = faceUID, faceGID // not every distribution's gpsd has a user of its own
	}
	if f.cfg.MAC80211 {
		if f.radios, err = hwsim.Open(); err != nil {
			return err
		}
	}
	if err := f.buildNodes(control); err != nil {
		return err
	}
	fleet := map[string]fleetEntry{}
	for _, n := range f.manned() {
		entry, err := n.prepare(f.cfg, faceUID, faceGID)
		if err != nil {
			return err
		}
		entry.Netns = f.ctlNS
		fleet[n.Name] = entry
	}
	return writeFleet(f.Info().Fleet, f.cfg.ControllerKeys, fleet)
}

// buildNodes makes the nodes' namespaces, several at a time.
func (f *Field) buildNodes(control netns.NsHandle) error {
	var g errgroup.Group
	for i := range min(builders, len(f.nodes)) {
		g.Go(func() error {
			t := newThread()
			defer t.close()
			for k := i; k < len(f.nodes); k += builders {
				if err := f.buildNode(t, f.nodes[k], control); err != nil {
					return fmt.Errorf("create node %q: %w", f.nodes[k].Name, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (f *Field) buildNode(t *thread, n *node, control netns.NsHandle) error {
	err := t.create(n.netns, func() (err error) {
		if err := quiet(); err != nil {
			return err
		}
		if n.counter, err = drops.OpenCounter(); err != nil {
			return err
		}
		if err := f.giveRadio(n); err != nil {
			return err
		}
		if n.Bare {
			return relay(n.MeshAddress)
		}
		return connect(control, n.port, n.control)
	})
	if err != nil || n.Bare {
		return err
	}
	n.line, err = gps.OpenLine(f.uid, f.gid)
	return err
}

// giveRadio makes the tested interface of the node that the calling thread is in: one
// of the kernel's radios, as a machine has it that has come up, or a TAP device.
func (f *Field) giveRadio(n *node) (err error) {
	if f.radios == nil {
		n.tap, err = createRadio(n.mac)
		return err
	}
	here, err := netns.Get()
	if err != nil {
		return fmt.Errorf("find namespace: %w", err)
	}
	defer here.Close()
	if err := f.radios.NewRadio(n.mac, int(here)); err != nil {
		return err
	}
	return within(func(h *netlink.Handle) error { return bringUp(h, radioLink, nil) })
}

// relay makes the node that the calling thread is in one that forwards: its
// address, and what a router over one interface needs. Redirects would send
// the others past it, and the reverse path filter drops what comes by another
// way than it would go.
func relay(address string) error {
	for _, set := range [][2]string{
		{"ip_forward", "1"}, {"conf/all/rp_filter", "0"}, {"conf/default/rp_filter", "0"},
		{"conf/" + radioLink + "/rp_filter", "0"},
		{"conf/all/send_redirects", "0"}, {"conf/default/send_redirects", "0"},
		{"conf/" + radioLink + "/send_redirects", "0"},
	} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+set[0], []byte(set[1]+"\n"), 0); err != nil {
			return fmt.Errorf("let it forward: %w", err)
		}
	}
	p, err := netip.ParsePrefix(address)
	if err != nil {
		return fmt.Errorf("give it an address: %w", err)
	}
	addr, err := netlink.ParseAddr(p.String())
	if err != nil {
		return fmt.Errorf("give it an address: %w", err)
	}
	return within(func(h *netlink.Handle) error {
		if err := bringUp(h, "lo", nil); err != nil {
			return err
		}
		l, err := h.LinkByName(radioLink)
		if err != nil {
			return fmt.Errorf("find link %q: %w", radioLink, err)
		}
		if err := h.AddrAdd(l, addr); err != nil {
			return fmt.Errorf("add address %s to %q: %w", address, radioLink, err)
		}
		return nil
	})
}
