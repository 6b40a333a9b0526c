package nl80211

// Channel is the number of the channel with a centre frequency in MHz (IEEE
// 802.11-2020, 15.4.4.3 and 17.3.8.4.2); 0 for one outside 2.4 and 5 GHz.
func Channel(mhz int) int {
	switch {
	case mhz == 2484:
		return 14
	case mhz >= 2412 && mhz <= 2472:
		return (mhz - 2407) / 5
	case mhz >= 5160 && mhz <= 5885:
		return (mhz - 5000) / 5
	}
	return 0
}

// Frequency is the centre of a channel in MHz, 0 for none: up to 14 those of
// 2.4 GHz, above those of 5 GHz.
func Frequency(channel int) int {
	switch {
	case channel == 14:
		return 2484
	case channel >= 1 && channel <= 13:
		return 2407 + 5*channel
	case channel >= 32 && channel <= 177:
		return 5000 + 5*channel
	}
	return 0
}
