package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/manager"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// WiFi asks what Android has in force on an interface: its hotspot, or what its
// station has joined.
type WiFi struct {
	Interface   string `json:"interface"`
	AccessPoint bool   `json:"access_point,omitempty"`
}

// WiFi returns the network that Android keeps or has joined, as Android tells it
// now. Refused: it is in none.
func (c *Client) WiFi(ctx context.Context, w WiFi) (wire.Caps, error) {
	a, err := c.call(ctx, request{WiFi: &w})
	return answered(a.Radio, err)
}

func (k *keeper) wifi(w WiFi) (*wire.Caps, error) {
	k.mu.Lock() // not while a change is half made
	defer k.mu.Unlock()
	refuse := func(reason, cure string) error {
		return &change.Refused{Change: "Wi-Fi of " + w.Interface, Reason: reason, Cure: cure}
	}
	if reason, cure := k.policy.CheckInterface(w.Interface); reason != "" {
		return nil, refuse(reason, cure)
	}
	is, err := manager.Here().WiFi(w.AccessPoint)
	if err != nil {
		return nil, err
	}
	if !w.AccessPoint && !is.On {
		return nil, errors.New("the phone's Wi-Fi is off; look at it: who has switched it off?")
	}
	n, mode, what := is.InStation(w.Interface), "managed", "has joined no network"
	if w.AccessPoint {
		n, mode, what = is.Hotspot, "ap", "keeps no hotspot"
		if n != nil && (n.Interface != w.Interface || n.MHz == 0) {
			n = nil
		}
	}
	if n == nil {
		return nil, refuse("Android "+what+" on it", "look at the phone: who has switched it?")
	}
	return &wire.Caps{Driver: wire.AndroidDriver, Mode: mode, Channel: nl80211.Channel(n.MHz), SSID: n.SSID,
		BSSID: n.BSSID, RatesMbps: []float64{}}, nil
}

// androidAPI returns a function that tells the level of Android's API; 0 without
// Android. Where Android does not tell it, it is 0 as well, and asked for again.
func androidAPI(log *slog.Logger) func() int {
	var mu sync.Mutex
	told, known := 0, false
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		if known {
			return told
		}
		api, err := manager.Here().AndroidAPI()
		if err != nil {
			log.Warn("Android does not tell its version", "error", err)
			return 0
		}
		told, known = api, true
		return told
	}
}
