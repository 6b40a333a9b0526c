// Package hwsim gives tests in a guest 802.11 radios of mac80211_hwsim: the
// kernel's own stack over an air that the kernel keeps. That air has no
// airtime, loss or range: rates, retries and throughput over it mean nothing,
// who hears whom is set by groups. It is for tests in a guest only
// (test/testnet/guest).
package hwsim

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

const phys = "/sys/class/ieee80211"

// Radio is one simulated radio with the interface that the kernel made for it.
type Radio struct {
	Phy       string // phy0; another one after the module was loaded again
	Interface string // wlan0
	NS        string // the namespace that it was moved to, "" for the guest's own
}

// NeedGuest skips a test, saying why, outside a guest.
func NeedGuest(t testing.TB) {
	t.Helper()
	if os.Getenv("FIELDMESH_GUEST") == "" {
		t.Skip("needs a guest: scripts/guest runs it in one")
	}
}

// Modprobe loads a kernel module of the guest.
func Modprobe(t testing.TB, args ...string) {
	t.Helper()
	NeedGuest(t)
	run(t, "modprobe", args...)
}

// Load gives the guest so many radios, new ones; they go with the test, after
// the namespaces made later than this.
func Load(t testing.TB, radios int) []Radio {
	t.Helper()
	NeedGuest(t)
	run(t, "modprobe", "cfg80211")
	unload(t)
	run(t, "modprobe", "mac80211_hwsim", "radios="+strconv.Itoa(radios))
	t.Cleanup(func() { unload(t) })
	var out []Radio
	for range 200 {
		if out = present(); len(out) == radios {
			return out
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%d radios of %d appeared within 10 s: %v", len(out), radios, out)
	return nil
}

func unload(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/sys/module/mac80211_hwsim"); errors.Is(err, os.ErrNotExist) {
		return
	}
	run(t, "modprobe", "-r", "mac80211_hwsim")
}

// present lists the radios of the guest's own namespace with one interface,
// in the order in which they were made.
func present() []Radio {
	names, _ := filepath.Glob(phys + "/*") // only a bad pattern is an error
	var out []Radio
	for _, name := range names {
		if devices, _ := filepath.Glob(name + "/device/net/*"); len(devices) == 1 {
			out = append(out, Radio{Phy: filepath.Base(name), Interface: filepath.Base(devices[0])})
		}
	}
	number := func(i int) int { n, _ := strconv.Atoi(strings.TrimPrefix(out[i].Phy, "phy")); return n }
	sort.Slice(out, func(i, j int) bool { return number(i) < number(j) })
	return out
}

// Move puts a radio into a namespace, where its interface keeps its name
// unless name is given.
func (r *Radio) Move(t testing.TB, ns *testnet.NS, name string) {
	t.Helper()
	run(t, "iw", "phy", r.Phy, "set", "netns", "name", ns.Name)
	r.NS = ns.Name
	if name != "" && name != r.Interface {
		ns.Run(t, "ip", "link", "set", r.Interface, "name", name)
		r.Interface = name
	}
}

// Hear sets who hears the radio: those that share a bit of the mask with it.
// A chain of four is 1, 3, 6, 4.
func (r Radio) Hear(t testing.TB, mask uint) {
	t.Helper()
	r.set(t, "group", fmt.Sprintf("0x%x", mask))
}

func (r Radio) set(t testing.TB, name, value string) {
	t.Helper()
	path := filepath.Join("/sys/kernel/debug/ieee80211", r.Phy, "hwsim", name)
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		t.Fatalf("set %s of %s: %v", name, r.Phy, err)
	}
}

// Country sets the regulatory domain of the guest, as a user would, and waits
// until it is in force.
func Country(t testing.TB, code string) {
	t.Helper()
	run(t, "iw", "reg", "set", code)
	for range 100 {
		if strings.Contains(run(t, "iw", "reg", "get"), "country "+code) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the regulatory domain is not %s within 10 s", code)
}

// IW runs iw where the radio is and returns what it printed.
func (r Radio) IW(t testing.TB, args ...string) string {
	t.Helper()
	if r.NS == "" {
		return run(t, "iw", args...)
	}
	return run(t, "ip", append([]string{"netns", "exec", r.NS, "iw"}, args...)...)
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Commands and attributes of the module's own netlink family
// (drivers/net/wireless/virtual/mac80211_hwsim.h).
const (
	cmdNewRadio       = 4
	cmdDelRadio       = 5
	attrRadioName     = 17
	attrIftypeSupport = 23
)

// Plain makes a radio that can be a station and an access point, and has
// neither ad hoc mode nor mesh. It goes with the module, so Load is called
// first.
func Plain(t testing.TB, name string) Radio {
	t.Helper()
	return newRadio(t, name, func(e *netlink.AttributeEncoder) {
		e.Uint32(attrIftypeSupport, 1<<unix.NL80211_IFTYPE_STATION|1<<unix.NL80211_IFTYPE_AP)
	})
}

// Plug makes one more radio like those of Load.
func Plug(t testing.TB, name string) Radio {
	t.Helper()
	return newRadio(t, name, func(*netlink.AttributeEncoder) {})
}

func newRadio(t testing.TB, name string, more func(*netlink.AttributeEncoder)) Radio {
	t.Helper()
	if err := command(cmdNewRadio, name, more); err != nil && !isNumber(err) {
		t.Fatalf("make radio %q: %v", name, err)
	}
	for range 200 {
		for _, r := range present() {
			if r.Phy == name {
				return r
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("radio %q did not appear within 10 s: %v", name, present())
	return Radio{}
}

// Unplug takes a radio away, whatever it does just then.
func (r Radio) Unplug(t testing.TB, ns *testnet.NS) {
	t.Helper()
	ns.Do(t, func() error { // the module finds radios in the caller's namespace only
		err := command(cmdDelRadio, r.Phy, func(*netlink.AttributeEncoder) {})
		if err != nil {
			err = fmt.Errorf("take radio %q away: %w", r.Phy, err)
		}
		return err
	})
}

// command puts a command about a radio to the module.
func command(number uint8, name string, more func(*netlink.AttributeEncoder)) (err error) {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	family, err := c.GetFamily("MAC80211_HWSIM")
	if err != nil {
		return err
	}
	e := netlink.NewAttributeEncoder()
	e.String(attrRadioName, name)
	more(e)
	data, err := e.Encode()
	if err != nil {
		return err
	}
	_, err = c.Execute(genetlink.Message{Header: genetlink.Header{Command: number, Version: family.Version},
		Data: data},
		family.ID, netlink.Request|netlink.Acknowledge)
	return err
}

// isNumber tells the number of the new radio, which the module answers in the
// place of an error, from an error.
func isNumber(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && int(errno) < 0
}
