package wire

const (
	// spoolPerSecond is what a trial's records come to, measured at about
	// 40 kB/s for six streams at 10 Hz and taken as much again and more; it
	// grows with the sampling of sockets, which is most of it.
	spoolPerSecond = 100_000
	spoolPerTrial  = 4_000_000 // iperf3's own output and provenance
	// spoolPerDatagram is a record of a timed flow's datagram with every field, 500 bytes, and some more.
	spoolPerDatagram = 600
)

// SpoolBytes is the most that a trial's records come to on one node.
func (t Trial) SpoolBytes() int64 {
	hz := SampleHzMin
	if t.SampleHz != nil {
		hz = *t.SampleHz
	}
	datagrams := 0
	for _, f := range t.Traffic {
		if f.Timed() {
			datagrams += f.Datagrams()
		}
	}
	return spoolPerTrial + int64(spoolPerDatagram*datagrams) +
		int64(spoolPerSecond*float64(hz)/SampleHzMin*(t.DurationS+t.Gate.TimeoutS+t.Routing.ReadyLimit().Seconds()))
}
