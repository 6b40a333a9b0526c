package face

import (
	"errors"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Only the app on the node's own phone knows the node's Wi-Fi.
//
//attack:phone another phone's app tells its own Wi-Fi as this node's | only the key of the node's configuration
//attack:and (`app_key`) may
func TestOnlyTheAppThatStartsTheAgentTellsOfItsWiFi(t *testing.T) {
	reading := wire.WiFiReading{AgeMs: 2, RenewedWithinMs: 500, SignalDbm: new(-61.0)}
	for name, c := range map[string]struct {
		own, by string
		takes   bool
	}{
		"its own":                   {pinOf("a"), pinOf("a"), true},
		"another":                   {pinOf("a"), pinOf("b"), false},
		"where no app starts it":    {"", pinOf("b"), false},
		"where no app starts it, 2": {"", "", false},
	} {
		f := &Face{cfg: config.Config{AppKey: c.own}, told: radio.NewTold(clock.System{})}
		_, err := f.PushWiFi(api.Peer{Name: "phone", Role: wire.RoleApp, Pin: c.by}, reading)
		bodies, _ := f.told.Sample(0)
		var refused *wire.Error
		if taken := err == nil && len(bodies) == 1; taken != c.takes ||
			!c.takes && (!errors.As(err, &refused) || refused.Code != wire.CodeForbidden || len(bodies) > 0) {
			t.Errorf("%s: %v, %d records", name, err, len(bodies))
		}
	}
}
