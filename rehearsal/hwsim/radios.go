package hwsim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// regulatory is the table of the module's that each radio gets in place of a
// country's (hwsim_world_regdom_custom_01): channels 1 to 11 and 14 with 20 dBm, 36 to
// 48 and 149 to 165 with 30 dBm, and networks may be begun on all of them.
const regulatory = 0

// regulatoryWide is another one (hwsim_world_regdom_custom_04), whose channels at 5 GHz are 80 MHz
// wide at most, not 40.
const regulatoryWide = 3

// radios makes radios.
type radios struct {
	mu       sync.Mutex // one at a time: each is wlan0 where it is made
	c        *genetlink.Conn
	family   genetlink.Family
	wireless genetlink.Family // nl80211
}

func openRadios() (*radios, error) {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return nil, err
	}
	r := &radios{c: c}
	r.family, err = c.GetFamily(familyName)
	if err == nil {
		r.wireless, err = c.GetFamily(unix.NL80211_GENL_NAME)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return r, nil
}

func (r *radios) close() error { return r.c.Close() }

// NewRadio makes a radio with an address and puts it, with its interface, into a
// network namespace. It is in managed mode, and down.
func (a *Air) NewRadio(mac net.HardwareAddr, netnsFD int) error {
	r := a.radios
	r.mu.Lock()
	defer r.mu.Unlock()
	name, table := radioName(mac), uint32(regulatory)
	if a.Wide {
		table = regulatoryWide
	}
	err := r.execute(r.family, cmdNewRadio, func(e *netlink.AttributeEncoder) {
		e.String(attrRadioName, name)
		e.Bytes(attrAddress, mac)
		e.Uint32(attrRegulatory, table)
		e.Flag(attrDestroyOnClose, true)
	})
	if err != nil && !isNumber(err) {
		return fmt.Errorf("make simulated radio %s: %w", mac, err)
	}
	text, err := os.ReadFile(filepath.Join("/sys/class/ieee80211", name, "index"))
	if err != nil {
		return fmt.Errorf("find simulated radio %s: %w", mac, err)
	}
	index, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return fmt.Errorf("find simulated radio %s: %w", mac, err)
	}
	err = r.execute(r.wireless, unix.NL80211_CMD_SET_WIPHY_NETNS, func(e *netlink.AttributeEncoder) {
		e.Uint32(unix.NL80211_ATTR_WIPHY, uint32(index))
		e.Uint32(unix.NL80211_ATTR_NETNS_FD, uint32(netnsFD))
	})
	if err != nil {
		return fmt.Errorf("move simulated radio %s: %w", mac, err)
	}
	return nil
}

func (r *radios) execute(family genetlink.Family, command uint8, f func(*netlink.AttributeEncoder)) error {
	e := netlink.NewAttributeEncoder()
	f(e)
	data, err := e.Encode()
	if err != nil {
		return err
	}
	_, err = r.c.Execute(genetlink.Message{Header: genetlink.Header{Command: command, Version: family.Version},
		Data: data}, family.ID, netlink.Request|netlink.Acknowledge)
	return err
}

// isNumber distinguishes the number of the new radio, which the module answers in the
// place of an error, from an error.
func isNumber(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && int(errno) < 0
}

// rates are those of a radio's band, by index: 802.11b's come first at 2.4 GHz, and
// are not there at 5 GHz (hwsim_rates).
func rates(mhz int) []float64 {
	all := []float64{1, 2, 5.5, 11, 6, 9, 12, 18, 24, 36, 48, 54}
	if mhz >= 5000 {
		return all[4:]
	}
	return all
}

// RateMbps is a rate by its index in the table of a frequency's band; 0 for none.
func RateMbps(mhz, index int) float64 {
	if all := rates(mhz); index >= 0 && index < len(all) {
		return all[index]
	}
	return 0
}

// RateIndex is the index of a rate in the table of a frequency's band; -1 for none.
func RateIndex(mhz int, rateMbps float64) int { return slices.Index(rates(mhz), rateMbps) }
