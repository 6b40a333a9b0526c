package wire_test

import "fieldmesh.dev/fieldmesh/protocols/wire"

func p[T any](v T) *T { return &v }

const sampleEpoch = "5f0c9a7e1b2d4c36"

// photo is what a note may have with it.
func photo() *wire.Attachment {
	return &wire.Attachment{MediaType: "image/jpeg", Bytes: 183214,
		SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
}

// bodies are samples of every body of the API, with every field set: the names
// are those of the golden files.
func bodies() map[string]any {
	position := wire.SpoolPosition{Epoch: sampleEpoch, Seq: 48213}
	spool := wire.SpoolStatus{Newest: position, Oldest: 1, UsedBytes: 18874368, QuotaBytes: 2000000000,
		FreeBytes: 51539607552, RoomBytes: new(int64(1981125632)),
		UnconfirmedRuns: []string{"velocity-1"}}
	key := wire.TrialKey{Trial: 2, Attempt: 1}
	verdict := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "rejected",
		Reason: wire.ParseReason("speed: 62 % of the window in band, 80 % needed"), Final: true,
		Word: &wire.Word{Decision: "skip", By: "phone", Text: "the road is closed", NoteID: "7f3a", Judged: "rejected"},
		Checks: []wire.Check{
			{Rule: "in_band_share_min", Node: "car", Limit: 0.8, Measured: p(0.62), Pass: false,
				Detail: "band 13.4 to 14.4 m/s"},
		}, ThroughputBps: p(18.4e6)}
	return map[string]any{
		"node_status": &wire.NodeStatus{
			Node: "car", Version: "0.1.0", Kernel: "6.1.0-28-amd64", Arch: "amd64", Interface: "wlan0",
			InterfaceUp: p(true), MAC: "02:11:22:33:44:55",
			Tools: map[string]string{"iperf3": "3.12", "gpsd": "3.22"}, Congestion: []string{"reno", "cubic"},
			GPS: sampleGPS(), GPSRateHz: p(10.0), Spool: spool,
			Host: wire.HostStatus{Reached: true, Pending: []string{"address 10.77.0.1/24 on wlan0"},
				Failed: []string{"route 10.78.0.0/24: no such device"}, Damaged: 1,
				Detail: "put back by the dead-man timer", Instance: "91d3c2", ByHand: "7Q2M", AndroidAPI: 34,
				Settings: []string{"interface: wlan0", "allow.prefixes: [10.77.0.0/16]"},
				TCP: []wire.Ability{{Feature: "variant tahoe", How: "none",
					Reason: "the kernel does not describe its types", Needs: "BTF"}}},
			Run: "velocity-1", Clock: sampleClock(),
			Problems:    []wire.Problem{{Need: "gps", Found: "no fix", Cure: "give the receiver a view of the sky"}},
			MemoryBytes: 19922944,
			Radio:       sampleCaps(), ControlInterface: "eth0", ReachedBy: "eth0",
			Machine: sampleMachine(), WallClock: sampleWallClock(),
			AllowedPrefixes: []string{"10.77.0.0/16"}, Privileges: "none", Absent: []string{"interface wlan0"},
			AtStart: true, Shard: &wire.Shard{Number: 1, Of: 2}, CaptureRuns: []string{"velocity-1"},
		},
		"clock_reply":   p(sampleClock()),
		"lease":         &wire.Lease{Holder: "controller velocity-1", TTLS: 30, Places: []wire.Place{samplePlace()}},
		"run_plan":      samplePlan(),
		"trial_key":     &key,
		"abort_request": &wire.AbortRequest{TrialKey: key, Reason: "a bus stands on the course", Follows: true},
		"verdicts":      &[]wire.Verdict{verdict, {TrialKey: key, Outcome: "accepted"}},
		"restore_report": &wire.RestoreReport{Undone: []string{"address 10.77.0.1/24 on wlan0"},
			Failed:     []string{"route 10.78.0.0/24: no such device", "journal line 1: checksum does not hold"},
			Damaged:    1,
			Unrecorded: []string{"write journal: read-only file system"}},
		"spool_position": &position,
		"confirmation":   &wire.Confirmation{Run: "velocity-1", Epoch: sampleEpoch, Seq: 48213, Over: true},
		"spool_status":   &spool,
		"campaign_view": &wire.CampaignView{
			Version: 17, Run: "velocity-1", Campaign: "velocity", State: "armed", Current: &key,
			Detail: "waiting for 13.4 to 14.4 m/s", ToStart: true,
			Trials: []wire.TrialView{{Number: 1, Attempts: []wire.Verdict{verdict}},
				{Number: 2, Attempts: []wire.Verdict{}}}, Position: position,
			Live: &wire.Live{SpeedMps: p(13.9), TrackDeg: p(87.5), FixMode: 3, ThroughputBps: p(18.4e6),
				RemainingS: p(6.5)},
			Places: []wire.Place{samplePlace()}, Ended: true,
		},
		"schedule": p(samplePlan().Schedule()),
		"wifi_reading": &wire.WiFiReading{AgeMs: 2.5, RenewedWithinMs: 500, SignalDbm: p(-61.0),
			TxBitrateMbps: p(286.0), RxBitrateMbps: p(243.0), FrequencyMHz: p(5180)},
		"fix": &wire.Fix{AgeMs: 12.5, Mode: 3, TimeUTC: "2026-01-01T00:00:00.100Z", LatDeg: p(-26.682),
			LonDeg: p(27.092), AltM: p(1354.2), SpeedMps: p(13.9), TrackDeg: p(87.5), SpeedErrMps: p(0.31),
			HorizErrM: p(3.4), SatellitesUsed: p(11)},
		"note": &wire.Note{ID: "0b7c-1", Note: "mark", Text: "bus passed", AgeMs: p(1500.0), Run: "velocity-1",
			Trial: 2, Attempt: 1, LatDeg: p(-26.682), LonDeg: p(27.092), Attachment: photo()},
		"attachment_put":  &wire.AttachmentPut{SHA256: photo().SHA256, Offset: 49152, Data: "/9j/2Q=="},
		"attachment_name": &wire.AttachmentName{SHA256: photo().SHA256},
		"attachment_held": &wire.AttachmentHeld{SHA256: photo().SHA256, Bytes: 183214, HeldBytes: 49152,
			Archived: true},
		"apps": &wire.Apps{Apps: []wire.App{{Name: "phone",
			Pin: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}}},
		"error": &wire.Error{Code: wire.CodeLeaseHeld, Message: `the lease is held by "controller velocity-0" for 12 s more`, Cure: "end that run, or wait"},
	}
}

func samplePlace() wire.Place {
	return wire.Place{Node: "roadside", LatDeg: -26.6815, LonDeg: 27.0931, AgeMs: 2300}
}

func sampleClock() wire.ClockReply {
	return wire.ClockReply{BootNs: 7261834512345, WallNs: 1767225600123456789}
}

func sampleGPS() *wire.GPS {
	return &wire.GPS{
		Mode: 3, FixAgeMs: p(42.5), FixBootNs: p(int64(7261792012345)), TimeUTC: "2026-01-01T00:00:00.100Z",
		LatDeg: p(-26.682), LonDeg: p(27.092), AltM: p(1354.2),
		SpeedMps: p(13.9), TrackDeg: p(87.5), SpeedErrMps: p(0.31), HorizErrM: p(3.4), SatellitesUsed: p(11),
		HDOP: p(0.9), Connected: true, RateHz: p(10.0),
	}
}

func sampleCaps() *wire.Caps {
	return &wire.Caps{Driver: "nl80211", MAC: "02:11:22:33:44:55", Mode: "adhoc", Standard: "802.11g", Channel: 6,
		TxPowerDbm: p(20.0), RatesMbps: []float64{1, 54}, SSID: "mesh",
		BSSID: "02:11:22:33:44:66", Width: "20 MHz (no HT)", BasicRatesMbps: []float64{1}, Country: "DE",
		Modes: []string{"adhoc", "managed"}, Channels: []int{1, 6, 11},
		RTSThresholdBytes: p(2347), ShortRetryLimit: p(7), LongRetryLimit: p(4),
		Combinations: []string{"#{ adhoc, managed } <= 2, total <= 2, #channels <= 1"},
		Heard: []wire.HeardCell{{SSID: "home", BSSID: "02:11:22:33:44:77", Channel: 6, SignalDbm: p(-71.0),
			AgeMs: 120}},
		Beside: &wire.Beside{Interface: "wlan0", Mode: "managed", Channel: 6,
			Channels: map[string]int{"adhoc": 1}},
		PowerSave: p(true)}
}

func sampleMachine() *wire.Machine {
	return &wire.Machine{BatteryPercent: p(4.0), BatteryState: "discharging", BatteryLeftS: p(840.0), OnMains: p(false),
		TemperatureC: p(61.5), HottestZone: "x86_pkg_temp", DiskFreeBytes: p(int64(51539607552)),
		SpoolBytes: p(int64(18874368)), Alarm: wire.ParseReason("battery: 4 % left, the limit is 5 %")}
}

func sampleWallClock() *wire.WallClock {
	return &wire.WallClock{OwnWallOffsetNs: 1767218338288944444, Unset: true, SteppedNs: p(int64(3600000000000)),
		GPSOffsetNs: p(int64(-42000000)), GPSUncertaintyNs: p(int64(wire.NMEATimeUncertaintyNs)),
		Sync: "synchronised", SyncSource: "PPS0", SyncOffsetNs: p(int64(-1200)), SyncUncertaintyNs: p(int64(350000)),
		SyncDriftPpm: p(-8.25)}
}

func samplePlan() *wire.RunPlan {
	goKey := make([]byte, wire.GoKeyBytes)
	for i := range goKey {
		goKey[i] = byte(i)
	}
	return &wire.RunPlan{
		Run: "velocity-1", Campaign: "velocity",
		CampaignSHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Seed: 18446744073709551615,
		Key: goKey, AttemptsMax: 3, Control: wire.ControlOwn, Shard: &wire.Shard{Number: 1, Of: 2},
		Nodes: []wire.PlanNode{
			{Name: "car", Unit: "laptop-1", MeshPrefix: "10.77.0.1/24", ControlAddr: "192.168.50.11",
				GoPort: wire.DefaultGoPort},
			{Name: "roadside", Unit: "laptop-2", MeshPrefix: "10.77.0.2/24", GoPort: wire.DefaultGoPort},
			{Name: "relay", MeshPrefix: "10.77.0.3/24", GoPort: wire.DefaultGoPort},
		},
		Trials: []wire.Trial{sampleTrial(), parkedTrial()},
	}
}

func sampleTrial() wire.Trial {
	return wire.Trial{
		Number: 1, Block: 1, Repetition: 1, Pass: "calibration",
		Factors: map[string]string{"speed_mps": "13.9", "section": "A"},
		Car:     "car", Roadside: "roadside", Sender: "car", Receiver: "roadside", Initiator: "car",
		Relays: []string{"relay"}, SpeedMps: p(13.9), Direction: "outbound",
		Course: wire.Course{Kind: "segment", StartM: -80, OffsetM: 5, SegmentM: p(20.0), LengthM: p(139.0),
			AccelMps2: 1.8, BrakeMps2: 2.5, MarkM: p(50.0), SiteLatDeg: p(-26.682), SiteLonDeg: p(27.092),
			HeadingDeg: 87.5},
		Gate: wire.Gate{AtStart: true, SpeedBand: true, HoldS: 1, PlaceM: p(20.0), AfterS: p(0.5), TimeoutS: 120,
			LeadS: 0.3},
		DurationS: 10, Still: true,
		Conditions: &wire.Conditions{ChannelErrorMean: p(0.01), ChannelErrorBurstFrames: p(10.0), QueueFrames: p(20),
			WidthM: p(400.0), HeightM: p(800.0),
			SpeedMinMps: p(0.5), SpeedMaxMps: p(20.0)},
		Radio: wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6, SSID: "fieldmesh",
			BSSID: "02:ca:fe:00:00:06", TxPowerDbm: p(20.0), RateMbps: p(54.0),
			RTSThresholdBytes: p(500), RetryLimit: p(7)},
		Routing: wire.Routing{Protocol: "olsr", HelloS: p(1.5), LinkFeedback: new(false), Ready: "routes",
			ReadyS: p(45.0), ProbeHz: p(10.0), HostUnreachable: new(false)},
		TCP: wire.TCP{Variant: "reno", Classic: true, SACK: p(false), DelayedACK: p(false), FixedRTO: true,
			RTOMinMs: p(500), RTOMaxMs: p(60000), WindowPackets: p(8)},
		Traffic: []wire.Flow{
			{Name: "main", Kind: "iperf3_tcp", From: "car", To: "roadside", UniqueEnds: true, Reverse: true,
				Port: 5000, Streams: 6, WindowBytes: p(65536), PayloadBytes: p(1448), StartS: 0, StartWithinS: p(3.0),
				Across: "cross", AcrossNode: "relay", DurationS: 10, ClientPort: 50000},
			{Name: "cross", Kind: "iperf3_udp", Background: true, From: "relay", To: "roadside", Port: 5001, Streams: 1,
				PayloadBytes: p(512), BitrateBps: p(1e6), StartS: 1.5, DurationS: 8, ClientPort: 51000},
			{Name: "delay", Kind: "delay", From: "car", To: "roadside", Port: 5002, Streams: 1, PayloadBytes: p(172),
				IntervalMs: p(20.0), DurationS: 10, ClientPort: 52000},
		},
		Acceptance: wire.Acceptance{SpeedBandMps: p(0.5), InBandShareMin: p(0.8), FixModeMin: p(3),
			FixAgeMsMax: p(1500.0), ClockErrorMsMax: p(10.0), LatenessShareMax: p(0.01), HopsMin: p(2)},
		SampleHz: p(50), RelaySampleHz: p(1), Capture: &wire.CapturePlan{SnapBytes: 96, Offloads: wire.OffloadsOff},
	}
}

// parkedTrial leaves out all that may be left out.
func parkedTrial() wire.Trial {
	return wire.Trial{
		Number: 2, Block: 1, Repetition: 1, Factors: map[string]string{}, Sender: "roadside", Receiver: "car",
		Initiator: "car",
		Course:    wire.Course{Kind: "none"}, Gate: wire.Gate{TimeoutS: 30}, DurationS: 10,
		Radio: wire.Radio{Mode: "none"}, Routing: wire.Routing{Protocol: "none"}, TCP: wire.TCP{Variant: "cubic"},
		Traffic: []wire.Flow{{Name: "main", Kind: "iperf3_tcp", From: "roadside", To: "car", Port: 5000, Streams: 1,
			DurationS: 10, ClientPort: 50000}},
	}
}

// kinds are samples of every kind of record, with every field set.
func kinds() []wire.Body {
	return []wire.Body{
		&wire.TrialState{State: "kept", Outcome: "rejected",
			Reason: wire.ParseReason("gate_timeout: 11.2 m/s at best")},
		&wire.Window{OpenBootNs: 7261834512345, CloseBootNs: 7271834512345, GoPath: "mesh", GoUncertaintyUs: p(850.5)},
		sampleGPS(),
		&wire.TCPSample{
			Flow: "main", Stream: p(0), Edge: "close", Local: "10.77.0.2:5000", Remote: "10.77.0.1:50000", Cookie: 4097,
			State: "ESTABLISHED", Congestion: "reno",
			CwndSegments: 44, SsthreshSegments: p(uint32(22)), MSSBytes: 1448, RTTUs: 18250, RTTVarUs: 2100,
			RTOUs: 224000, Retransmits: 7, Lost: 1,
			BytesAcked: 23117000, BytesReceived: 38, BytesSent: p(uint64(23240000)), BytesRetrans: p(uint64(10136)),
			DeliveryRateBps: p(18.4e6), PacingRateBps: p(37e6),
			CongestionState: "recovery", RTOsInARow: p(uint32(1)), RTOsTotal: p(uint32(3)), Unacked: p(uint32(40)),
			Sacked: p(uint32(12)), Reordering: p(uint32(3)), ReorderSeen: p(uint32(1)),
			MinRTTUs: p(uint32(1900)), DataSegsOut: p(uint32(16050)), DataSegsIn: p(uint32(2)), DSACKs: p(uint32(4)),
			OutOfOrder: p(uint32(5)), Stranger: true, StillMs: p(310.5),
		},
		&wire.Interface{Name: "wlan0", RxBytes: 1200345, TxBytes: 25400123, RxPackets: 9800, TxPackets: 17900,
			RxDropped: 1, TxDropped: 2, RxErrors: 3, TxErrors: 4},
		&wire.Station{Peer: "02:11:22:33:44:66", SignalDbm: p(-61.0), TxBitrateMbps: p(54.0), RxBitrateMbps: p(48.0),
			TxRetries: p(uint64(310)), TxFailed: p(uint64(2)), InactiveMs: p(12.0)},
		&wire.Survey{Channel: 6, NoiseDbm: p(-95.0), ActiveMs: p(120000.0), BusyMs: p(43000.0),
			QueueDrops: p(uint64(12))},
		&wire.Iperf3{Flow: "main", Side: "client", ExitCode: p(1), Killed: "its peer vanished", Error: "unable to connect to server", Output: []byte(`{"end":{"sum_received":{"bytes":23117000}}}`), RawText: "iperf3: error",
			StartedBootNs: p(int64(7261824512345)), EndedBootNs: p(int64(7261834512345)),
			StoppedBootNs: p(int64(7261828512345)), FrozenBootNs: p(int64(7261828912345)), Ended: "signal",
			Signal: "SIGKILL", Cause: "timeout"},
		&wire.Clock{Peer: "roadside", OffsetNs: -5000123456, UncertaintyNs: 210000, RTTNs: 420000,
			WallOffsetNs: 300000123, OwnWallOffsetNs: p(int64(1790000000000000000)), Exchanges: 8},
		&wire.Provenance{
			Agent: "0.1.0 (1a2b3c4)", Kernel: "6.1.0-28-amd64", Arch: "amd64", Machine: "ThinkPad X230",
			Interface: "wlan0", Driver: "ath9k_htc", MAC: "02:11:22:33:44:55",
			Tools:     map[string]string{"iperf3": "3.12"},
			Sysctls:   map[string]string{"net.ipv4.tcp_congestion_control": "reno"},
			Offloads:  map[string]bool{"gro": true, "tso": false},
			Addresses: []string{"10.77.0.1/24"}, Routes: []string{"10.77.0.0/24 dev wlan0"},
			Congestion: []string{"reno", "cubic"},
			TCP: &wire.TCPInForce{Variant: "reno", Kernel: "reno_1x", Provider: "bpf", Program: "reno",
				SHA256: "9f86d081", FixedRTO: true, RTOMinUs: p(500000), RTOMaxMs: p(60000), WindowPackets: p(8),
				Notes: []string{"with SACK this kernel always uses RACK"}},
			Radio: sampleCaps(), Confined: []string{"Landlock 7", "seccomp"}, Privileges: "none",
			SocketsBy: "descriptors", BoundTo: "wlan0",
		},
		&wire.HostChange{Scope: "run", Action: "applied", What: "address 10.77.0.1/24 on wlan0"},
		&wire.Lateness{Source: "medium", WindowS: 10, Events: 91234, SumS: 0.021, MeanUs: 0.23, P99Us: 180.5,
			WorstUs: 3100, SuspendedMs: p(1250.0), SlewedMs: p(0.25)},
		&wire.Truth{Of: "car", XM: 120.5, YM: 5, SpeedMps: 13.9, DistanceM: 120.6},
		&wire.Loss{Of: "car", Peer: "roadside", Flow: "10.77.0.1:50000>10.77.0.2:5000/tcp", Seq: 4029391823,
			PayloadBytes: p(uint64(512)),
			Cause:        "collision", RetryLimit: true},
		&wire.MediumCount{Of: "car", Enqueued: 9210, Delivered: 4400, Duplicate: 3, Attempts: 9400, Retries: 240,
			TxFailed: 2, FramesPerS: map[string]float64{"routing": 4.5},
			Lost:           map[string]uint64{"queue_full": 12, "channel_error": 2},
			AttemptsFailed: map[string]uint64{"channel_error": 240}, LossesUntold: 5},
		&wire.Event{Level: "warning", Text: "gpsd went away"},
		&wire.RouteChange{Action: "set", AtBootNs: 7261734512345, Destination: "10.77.0.6/32",
			NextHops: []string{"10.77.0.2", "10.77.0.3"}, Hops: p(5), Metric: p(5.5), Cause: "rrep"},
		&wire.RoutingCount{Protocol: "aodv", PacketsSent: p(uint64(120)), DataPacketsSent: p(uint64(900)),
			BytesSent: p(uint64(6240)), PacketsReceived: p(uint64(240)), BytesReceived: p(uint64(12480)),
			Messages:     map[string]uint64{"RREQ": 100, "RREP": 20},
			MessageBytes: map[string]uint64{"RREQ": 2400, "RREP": 400}, RoutesInstalled: 5, HeldPackets: p(uint64(2)),
			Neighbors: []wire.RoutingNeighbor{{Addr: "10.77.0.2", Symmetric: true, Cost: p(1.25), Role: "mpr"}},
			Dropped:   map[string]uint64{"no route at a relay": 3, "waited too long": 1}},
		&wire.RoutingEvent{Report: "discovery_us", AtBootNs: 7261734512345, Addr: "10.77.0.6", Value: p(12500.0),
			Note: "second ring"},
		&wire.TCPEvent{Flow: "main", Stream: p(0), Cookie: 4097, Local: "10.77.0.1:50000", Remote: "10.77.0.2:5000",
			Event: "rto", Source: "tcp_info", FromBootNs: p(int64(7261734512345)), Count: 1,
			CwndSegments: p(uint32(1)), CwndBefore: p(uint32(44)), SsthreshSegments: p(uint32(22))},
		&wire.Capture{Name: "0002-a1.pcapng", Interface: "wlan0", Above: "fieldmesh0", SnapBytes: 96,
			Filter: "tcp port 5000 or arp", Packets: 18123, KernelDrops: 2, FileDrops: 1, FileBytes: 2324120,
			SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", OpenBootNs: 7261834512345,
			CloseBootNs: 7271834512345, WallOffsetOpen: 1767225600123456789, WallOffsetClose: 1767225600123456999,
			Offloads: map[string]bool{"gro": true}, Error: "the ring of the kernel went away"},
		&wire.Noted{ID: "0b7c-1", Note: "mark", Text: "bus passed", NotedBootNs: p(int64(7261834512345)), By: "phone",
			LatDeg: p(-26.682), LonDeg: p(27.092), Attachment: photo()},
		sampleMachine(), sampleWallClock(),
		&wire.Probe{Peer: "road", ProbeSeq: 17, SentBootNs: 7261734512345, RTTUs: 5250},
		&wire.Edge{Edge: "close", Flow: "main", DueBootNs: 7271834512345, LateMs: 1.25, EarlyMs: p(0.75),
			Sockets: 6, Unknown: 1, Refused: p(uint64(12)), Error: "operation not supported", Filtered: p(uint64(3)),
			FilteredFlow: "load", Unwatched: 4},
		&wire.Signature{Records: 812, FirstSeq: 4101, LastSeq: 4920, AfterSeq: 4099,
			SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			Key:    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE", Signature: "MEUCIQD0"},
		&wire.Delay{Flow: "delay", Side: "sender", Datagram: 17, DueBootNs: p(int64(7261734512345)),
			HandedBootNs: p(int64(7261734532345)), QueuedBootNs: p(int64(7261734540345)),
			ReceivedBootNs: p(int64(7261739532345)), ReceivedStamp: "kernel",
			PeerReceivedBootNs: p(int64(2261739511111)), PeerReceivedStamp: "kernel",
			PeerHandedBootNs: p(int64(2261739555555)), Refused: "ENETUNREACH"},
		&wire.DelayEnd{Flow: "delay", Side: "responder", Sent: 499, Received: 498, Duplicates: 1, Foreign: 2},
		&wire.ProbeEnd{Peer: "road", Sent: 99},
		&wire.WiFi{Source: wire.SourceAndroid, Peer: "02:11:22:33:44:77", RenewedWithinMs: 500, SignalDbm: p(-61.0),
			TxBitrateMbps: p(286.0), RxBitrateMbps: p(243.0), FrequencyMHz: p(5180)},
	}
}
