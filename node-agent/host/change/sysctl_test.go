package change

import (
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

func TestAnInterfaceWithDotsIsOneName(t *testing.T) {
	key, err := parseKey("net.ipv4.conf.wlan0.5.rp_filter")
	if err != nil || key.device != "wlan0.5" || (netstack.Setting{Parts: key.parts}).Path() !=
		"/proc/sys/net/ipv4/conf/wlan0.5/rp_filter" {
		t.Errorf("parsed %+v, %v", key, err)
	}
}
