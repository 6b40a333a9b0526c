package change

import (
	"fmt"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// Offloads turns off, on an interface, all by which its driver or the kernel
// merges received segments into one packet or splits a sent one late: what a
// capture sees are then the packets of the wire.
type Offloads struct {
	Interface string `json:"interface"`
}

func (o Offloads) Target() string                       { return o.String() }
func (o Offloads) check(p Policy) (reason, cure string) { return p.CheckInterface(o.Interface) }
func (o Offloads) String() string                       { return "offloads of " + o.Interface + " off" }

// mergesSegments tells the features that do, by the kernel's names of them
// (net/ethtool/common.c).
func mergesSegments(feature string) bool {
	return strings.HasPrefix(feature, "rx-gro") || strings.HasPrefix(feature, "rx-lro") ||
		strings.HasPrefix(feature, "rx-udp-gro") ||
		strings.HasSuffix(feature, "-segmentation")
}

func (o Offloads) prepare(*Kernel, uint64) (*offloadsUndo, error) {
	link, err := netstack.FindLink(o.Interface)
	if err != nil {
		return nil, err
	}
	f, err := netstack.ReadFeatures(o.Interface)
	if err != nil {
		return nil, &Refused{Reason: err.Error(), Cure: "plan with capture: {offloads: recorded}"}
	}
	u := formerFeatures{Interface: o.Interface, Index: link.Attrs().Index,
		Changed: make([]uint32, len(f.Blocks)), Former: make([]uint32, len(f.Blocks))}
	var fixed []string
	for i, name := range f.Names {
		word, bit := i/32, uint32(1)<<(i%32)
		if !mergesSegments(name) || word >= len(f.Blocks) {
			continue
		}
		b := f.Blocks[word]
		switch {
		case b.Available&^b.NeverChanged&bit != 0:
			u.Changed[word] |= bit
			u.Former[word] |= b.Requested & bit
		case b.Active&bit != 0:
			fixed = append(fixed, name)
		}
	}
	if len(fixed) > 0 {
		reason := fmt.Sprintf("the driver of %s does not let %s be turned off", o.Interface, strings.Join(fixed, ", "))
		return nil, &Refused{Reason: reason, Cure: "plan with capture: {offloads: recorded}"}
	}
	return &offloadsUndo{Offloads: u}, nil
}

// apply turns them off, and checks whether they are.
func (o Offloads) apply(_ *Kernel, u *offloadsUndo) error {
	changed := u.Offloads.Changed
	if err := netstack.SetFeatures(o.Interface, changed, make([]uint32, len(changed))); err != nil {
		return err
	}
	f, err := netstack.ReadFeatures(o.Interface)
	if err != nil {
		return err
	}
	var on []string
	for i, name := range f.Names {
		if i/32 < len(f.Blocks) && mergesSegments(name) && f.Blocks[i/32].Active&(1<<(i%32)) != 0 {
			on = append(on, name)
		}
	}
	if len(on) > 0 {
		return fmt.Errorf("turn offloads of %q off: %s stay on", o.Interface, strings.Join(on, ", "))
	}
	return nil
}

// offloadsUndo turns back on what was on.
type offloadsUndo struct {
	placed
	Offloads formerFeatures `json:"offloads"`
}

// formerFeatures are bits, numbered by the running kernel; an undo is of the
// same boot.
type formerFeatures struct {
	Interface string   `json:"interface"`
	Index     int      `json:"index"`
	Changed   []uint32 `json:"changed"`
	Former    []uint32 `json:"former"`
}

func (u *offloadsUndo) void(*Kernel) bool { return netstack.Vanished(u.Offloads.Index) }

func (u *offloadsUndo) on() (string, int) { return u.Offloads.Interface, u.Offloads.Index }

func (u *offloadsUndo) revert(*Kernel) (string, error) {
	link, err := netstack.SameLink(u.Offloads.Index)
	if err != nil || link == nil {
		return netstack.Gone(u.Offloads.Interface), err
	}
	return "", netstack.SetFeatures(link.Attrs().Name, u.Offloads.Changed, u.Offloads.Former)
}
