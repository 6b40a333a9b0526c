package change

import (
	"fmt"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
)

// supplicant makes a radio an access point: an 802.11 stack leaves it to a
// program to let stations in.
const supplicant = "wpa_supplicant"

// prepareAccessPoint names the process that the change will keep running; nil
// for a radio that needs none.
func (k *Kernel) prepareAccessPoint(id uint64, r Radio, index int) (*process.Daemon, error) {
	if r.Mode != wireless.ModeAP {
		return nil, nil
	}
	binary := k.binaries[supplicant]
	if binary == "" {
		return nil, &Refused{Reason: "there is no " + supplicant + ", which makes a radio an access point",
			Cure: "install it (apt-get install wpasupplicant), or name its place as binaries." + supplicant +
				" in agent.yaml; then start the agent again"}
	}
	return &process.Daemon{Name: supplicant, Binary: binary, Interface: r.Interface, Index: index,
		Dir: filepath.Join(k.dir, "daemons", fmt.Sprintf("%d-%s", id, supplicant))}, nil
}
