// Package radios tests the whole on real 802.11 radios: agents in namespaces,
// each with a radio of mac80211_hwsim, driven by the controller as on a road.
// It has tests only, for a guest (test/testnet/guest). The simulated air
// has no airtime and no loss: nothing here judges how much was carried.
package radios
