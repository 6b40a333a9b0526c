package host

import (
	"encoding/hex"
	"fmt"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// Modes of a radio in an infrastructure, as the kernel names them.
const (
	modeAP      = "ap"
	modeStation = "managed"
)

// supplicant makes a radio an access point: an 802.11 stack leaves it to a
// program to let stations in.
const supplicant = "wpa_supplicant"

// prepareAccessPoint names the process that the change will keep running; nil
// for a radio that needs none.
func (k *kernel) prepareAccessPoint(id uint64, r Radio, index int) (*daemonProcess, error) {
	if r.Mode != modeAP {
		return nil, nil
	}
	binary := k.binaries[supplicant]
	if binary == "" {
		return nil, &Refused{Reason: "there is no " + supplicant + ", which makes a radio an access point",
			Cure: "install it (apt-get install wpasupplicant), or name its place as binaries." + supplicant +
				" in agent.yaml; then start the agent again"}
	}
	return &daemonProcess{Name: supplicant, Binary: binary, Interface: r.Interface, Index: index,
		Dir: filepath.Join(k.dir, "daemons", fmt.Sprintf("%d-%s", id, supplicant))}, nil
}

// begin has the interface be an access point.
func (d *radioDevice) begin(n nl80211.Network, p daemonProcess) error {
	d.listen(n.MHz)
	if err := d.quit(); err != nil {
		return err
	}
	ended, err := p.start(accessPointConfig(n), []string{"-D", "nl80211", "-i", p.Interface, "-c", p.configPath()})
	if err != nil {
		return err
	}
	if err := d.awaitJoined(n, ended); err != nil {
		return fmt.Errorf("%w; %s said: %s", err, p.Name, lastWords(p.logPath()))
	}
	return nil
}

// accessPointConfig is wpa_supplicant's whole configuration (wpa_supplicant.conf(5)):
// an open network without the rates of 802.11n and later. It opens no control
// socket, and looks for nobody first (ap_scan=2): the channel is the plan's. The
// SSID is in hexadecimal, in which nothing has to be quoted.
func accessPointConfig(n nl80211.Network) string {
	return fmt.Sprintf("ap_scan=2\np2p_disabled=1\nnetwork={\n ssid=%s\n mode=2\n frequency=%d\n key_mgmt=NONE\n "+
		"disable_ht=1\n disable_vht=1\n}\n",
		hex.EncodeToString([]byte(n.SSID)), n.MHz)
}
