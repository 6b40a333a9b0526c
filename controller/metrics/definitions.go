package metrics

import "fieldmesh.dev/fieldmesh/controller/metrics/wifi"

// definition says what a number is, so that no reader has to guess.
type definition struct{ name, unit, text string }

// Names of the numbers that the report is built on.
const (
	TransferredMB = "transferred_mb"
	ThroughputBps = "throughput_bps"

	// TransferredUnsureMB bounds what a late sample at an edge can have changed.
	TransferredUnsureMB = "transferred_unsure_mb"

	SpeedMeanMps   = "speed_mean_mps"
	SpeedTargetMps = "speed_target_mps"
	InBandShare    = "in_band_share"
	DistanceMeanM  = "distance_mean_m"
	DistanceOpenM  = "distance_open_m"
	DistanceCloseM = "distance_close_m"

	DistanceOpenUncertaintyM  = "distance_open_uncertainty_m"
	DistanceCloseUncertaintyM = "distance_close_uncertainty_m"

	SignalMeanDbm   = "signal_mean_dbm"
	LatenessShare   = "lateness_share"
	SamplerP99Us    = "sampler_lateness_p99_us"
	Iperf3MB        = "iperf3_received_mb"
	RetransmitsName = "retransmits"
	FirstByteS      = "first_byte_s"
	ClockErrorMs    = "clock_error_ms"
	EdgeLateMaxMs   = "edge_late_max_ms"
	CaptureDropped  = "capture_dropped"
)

var (
	transferred = definition{TransferredMB, "MB",
		"unique payload bytes (10^6) that the receiver's kernel delivered in the window: sum over the flow's data " +
			"sockets of tcp_info.bytes_received at the window's close less at its open; 0 when there was no " +
			"connection, absent when a socket was not sampled at an edge"}
	transferredUnsure = definition{TransferredUnsureMB, "MB",
		"at most so much of transferred_mb may be of the time just before or just after the window, or lack of it: " +
			"what the flow's data sockets received between their last sample before an edge of the window and that " +
			"edge's own, which is never early. The nearer of the two is the edge's; nodes sample every 2 ms before one"}
	throughput = definition{ThroughputBps, "bit/s",
		"transferred_mb × 8 × 10^6 ÷ the time within the window for which iperf3 was told to send"}
	connected = definition{"streams_connected", "1", "data sockets of the flow that the receiver had in the window"}
	firstByte = definition{FirstByteS, "s", "from the window's opening to the receiver's first sample with payload " +
		"bytes that came since; as fine as the sampler's period"}
	retransmits = definition{RetransmitsName, "segments",
		"tcp_info.total_retrans of the sender's data sockets in the window"}
	retransMB = definition{"retransmitted_mb", "MB",
		"tcp_info.bytes_retrans of the sender's data sockets in the window"}
	cwndMean = definition{"cwnd_mean_segments", "segments",
		"mean of the sender's congestion window over its samples in the window and its connected data sockets"}
	rttMean = definition{RTTMeanMs, "ms", "mean of the sender's smoothed round trip time over its samples in the " +
		"window and its data sockets"}

	iperfReceived = definition{Iperf3MB, "MB", "iperf3's own end.sum_received.bytes, as its client printed it; " +
		"includes bytes after the window; absent where the sending client did not come to its end"}
	iperfRate = definition{"iperf3_received_bps", "bit/s", "iperf3's own end.sum_received.bits_per_second, as its " +
		"client printed it"}
	iperfSent = definition{"iperf3_sent_mb", "MB", "iperf3's own end.sum_sent.bytes; includes what was still in " +
		"the sender's buffers"}
	iperfRetrans = definition{"iperf3_retransmits", "segments", "iperf3's own end.sum_sent.retransmits"}
	iperfLost    = definition{"iperf3_lost_percent", "%", "iperf3's own end.sum.lost_percent of a UDP flow"}

	speedTarget = definition{SpeedTargetMps, "m/s", "the plan's target speed of the car"}
	speedMean   = definition{SpeedMeanMps, "m/s", "the car's GPS speed over the window, weighted by time: a fix " +
		"counts until the next, or until it is stale"}
	inBand = definition{InBandShare, "1", "share of the window's time in which a fresh fix had the car within " +
		"the speed band; stale time is out of band"}
	fixAge = definition{"fix_age_max_ms", "ms", "oldest that the car's newest fix was at any moment of the window; " +
		"absent where it had none when the window opened"}
	fixMode    = definition{"fix_mode_min", "1", "lowest fix mode of the car's GPS in the window (2: 2-D, 3: 3-D)"}
	fixAgeMean = definition{"fix_age_mean_ms", "ms", "mean age of the car's newest fix over the window: how far " +
		"behind its speed was known. A receiver of 1 Hz is half a second behind by its rate alone, and smooths its " +
		"speed besides. Absent where fix_age_max_ms is"}
	gpsRate = definition{"gps_rate_hz", "1/s", "fixes a second of the car's receiver, mean over the window"}

	gpsLag = definition{"gps_speed_lag_s", "s", "by how much the car's reported speeds run behind its positions, as " +
		"the receiver's smoothing makes them; told where the attempt's records hold a change of speed of 3 m/s"}

	bearingOpen = definition{"bearing_open_deg", "degree", "bearing from the roadside node (of a pair a/b in " +
		"column flow: from a) to the car (to b) when the window opens, by GPS, from true north"}
	bearingClose  = definition{"bearing_close_deg", "degree", "the same bearing when the window closes"}
	relativeSpeed = definition{"relative_speed_mean_mps", "m/s", "speed of the two nodes against each other, mean " +
		"over the window, from GPS positions two seconds apart; of a pair a/b in column flow. Absent where " +
		"these were not known from 0.5 s after its opening to 0.5 s before its close"}
	pairDistance = definition{"pair_distance_mean_m", "m", "great-circle distance of the pair a/b in column flow, " +
		"mean over the window at 10 Hz; absent where it was not known throughout. Pairs are every two nodes of a " +
		"trial of up to 50, and of a larger one those that a flow joins"}

	distOpen = definition{DistanceOpenM, "m", "great-circle distance of the car's and the roadside node's GPS " +
		"positions when the window opens, interpolated between the fixes on either side, or extrapolated from the " +
		"nearest by speed and track. A fix counts at the moment that its receiver tells, where chrony keeps the " +
		"node's wall clock to 0.1 s by a pulse per second or a server; that must have UTC: one that is ahead of it " +
		"by less than 0.5 s is not told from a slow receiver, and fixes count too early by as much. Elsewhere, and " +
		"where by that clock all came more than 0.5 s late, a fix counts at its arrival. A roadside node without " +
		"fixes in the attempt, that is in the car in no trial, counts as at the campaign's course.site_lat_deg and " +
		"site_lon_deg"}
	distClose = definition{DistanceCloseM, "m", "great-circle distance of the car's and the roadside node's GPS " +
		"positions when the window closes, made in the same way"}
	openOff = definition{DistanceOpenUncertaintyM, "m",
		"distance_open_m may be off by ± this because of what nobody saw, the receivers' errors of position " +
			"(horiz_err_m) aside; the sum of both nodes'. How a node moved: between fixes half of 4 m/s² times the " +
			"time since the one times the time to the other; beyond the last its speed's error (0.5 m/s where it is " +
			"not told) times the time, and half of 4 m/s² times the time squared. When a fix was: its speed and the " +
			"speed's error times 0.5 s, or chrony's uncertainty where the receiver's own time counts, or the most " +
			"that one came late where by chrony's clock all came more than 0.5 s late; and half of 4 m/s² times that " +
			"time squared. A node that stands (under 0.5 m/s by its fixes) adds nothing, one that counts as at the " +
			"campaign's place 10 m: it was read off a map or a phone"}
	closeOff = definition{DistanceCloseUncertaintyM, "m", "the same of distance_close_m"}
	distMean = definition{DistanceMeanM, "m", "great-circle distance of the two GPS positions, mean over the window " +
		"at 10 Hz; absent where it was not known throughout"}
	meanOff = definition{"distance_mean_uncertainty_m", "m",
		"the same of distance_mean_m: the mean of what every moment of it may be off"}
	trueSpeed = definition{"truth_speed_mean_mps", "m/s",
		"speed of the car in the emulated field, mean over the window; rehearsal only"}
	trueOpen = definition{"truth_distance_open_m", "m",
		"distance in the emulated field when the window opens; rehearsal only"}
	trueClose = definition{"truth_distance_close_m", "m",
		"distance in the emulated field when the window closes; rehearsal only"}
	trueMean = definition{"truth_distance_mean_m", "m",
		"distance in the emulated field, mean over the window; rehearsal only"}

	signalMean = definition{SignalMeanDbm, "dBm", "signal of the sender's frames at the receiver, mean over its " +
		"samples in the window that are of a frame of the last 300 ms; absent, too, where its driver does not tell " +
		"when it heard the sender"}
	signalMin = definition{"signal_min_dbm", "dBm", "signal of the sender's frames at the receiver, lowest sample " +
		"in the window that is of a frame of the last 300 ms"}
	wifiReceiver = definition{"wifi_signal_receiver_dbm", "dBm", wifi.Meaning + "receiver"}
	wifiSender   = definition{"wifi_signal_sender_dbm", "dBm", wifi.Meaning + "sender"}

	bitrate = definition{"tx_bitrate_mean_mbps", "Mbit/s", "the sender's radio bit rate towards the receiver, " +
		"mean over its samples in the window"}
	txRetries = definition{"tx_retries", "frames", "the sender's link-layer retries towards the receiver in the " +
		"window; " + betweenNewest}
	txFailed = definition{"tx_failed", "frames", "frames towards the receiver that the sender's radio gave up in " +
		"the window; " + betweenNewest}
	queueDrops = definition{"queue_drops", "frames", "frames that the sender's interface queue dropped in the " +
		"window; " + betweenNewest}

	clockErr = definition{ClockErrorMs, "ms", "uncertainty of the nodes' alignment: that of their clocks' " +
		"comparison plus that of GO, whichever were measured"}
	lateness    = definition{LatenessShare, "1", "summed lateness of the emulated medium ÷ the window; rehearsal only"}
	samplerLate = definition{SamplerP99Us, "µs", "99th percentile of the samplers' lateness, the worse of the " +
		"two nodes"}
	edgeLate = definition{EdgeLateMaxMs, "ms", "latest that a node of the trial sampled its sockets at an edge of " +
		"the window, or started a flow's client"}
)

// What the captures at a flow's two ends tell. "Packets" are the flow's data
// packets, each transmission of a segment one packet. They are told where the
// application stands: a packet is sent when its socket has handed it on, be it to
// the interface or to the routing daemon, which may hold or discard it. What is
// told on the interface under test bears "link".
var (
	packetsSent = definition{PacketsSent, "packets",
		"data packets of the flow that its socket handed on within the sender's window, by captures on the interface " +
			"and on the routing daemon's device, whichever has them first; each transmission of a segment is one. " +
			"UDP: datagrams that iperf3 wrote to its socket from the window's open to its close, by their numbers " +
			"and stamps in the captures and, behind the last that a capture has, by iperf3's own count at the ends " +
			"of its seconds and the plan's rate since; absent where neither tells"}
	packetLoss = definition{"packet_loss_percent", "%",
		"dropped ÷ (highest packet ID + 1) × 100 at the application's packets (P2). Read of data packets, numbered " +
			"from 0 as their socket hands them on: (packets_sent − those that the receiver's capture has) ÷ " +
			"packets_sent × 100; by ns-2's IDs, which number ACKs too, about half. Too high by what captures dropped"}
	deliveryFraction = definition{"delivery_fraction", "1",
		"packets that the receiver's capture has ÷ packets_sent (P3 for constant-bit-rate flows; P5, which " +
			"does not define it); too low by what captures dropped"}
	linkSent = definition{LinkSent, "packets",
		"data packets of the flow that left by the sender's interface under test within its window: without what a " +
			"routing daemon discarded, and those it held only when they were let go"}
	linkLoss = definition{LinkLossPercent, "%",
		"(link_packets_sent − those that the receiver's capture has) ÷ link_packets_sent × 100; too high by what " +
			"captures dropped"}
	linkDelay = definition{"link_one_way_delay_mean_ms", "ms",
		"mean time from a packet's leaving by the sender's interface under test to its arrival by the receiver's, " +
			"over packets that arrived: without what a routing daemon held it for at the sender"}
	trueLoss = definition{"truth_packet_loss_percent", "%",
		"data packets of the flow that the emulated field lost in the window, on the air, in queues or for lack of a " +
			"route in a kernel, ÷ link_packets_sent × 100: what link_packet_loss_percent is checked against. What a " +
			"routing daemon holds and discards the field does not see; rehearsal only"}
	goodput = definition{"goodput_ratio", "1",
		"packets that brought the receiver at least one new byte ÷ packets_sent: delivered ÷ transmitted (P3); too " +
			"low by what captures dropped"}
	packetsRetransmitted = definition{"packets_retransmitted", "packets",
		"of packets_sent, those with at least one byte that was sent before"}
	capturedRetransMB = definition{"packets_retransmitted_mb", "MB",
		"payload bytes (10^6) that the sender's capture has sent before, in packets_retransmitted"}
	capturedMB = definition{"packets_delivered_mb", "MB",
		"payload bytes (10^6) without a hole before them, by the receiver's capture and its ACKs up to the window's " +
			"close; UDP: payload of different datagrams"}
	packetsOutOfOrder = definition{"packets_out_of_order", "packets",
		"of packets_sent, those that arrived after one that was sent later (RFC 4737, 3.3)"}
	packetsTwice = definition{"packets_duplicated", "packets",
		"copies at the receiver of one transmission, beyond the first"}
	packetsUnmatched = definition{"packets_unmatched", "packets",
		"data packets in the receiver's capture that the sender's does not have: what its kernel dropped from the " +
			"capture, or offloads merged"}
	packetsMerged = definition{"packets_merged", "packets",
		"packets whose length differs between the ends because offloads merged or split them; where there are any, " +
			"loss, goodput, order and one-way delay are not told"}
	connectMs = definition{ConnectTimeMs, "ms",
		"from when the client asks for its first connection to the server, the control connection that iperf3 opens " +
			"before those for data, until the first SYN-ACK comes to the client: the routing protocol's search for a " +
			"way is in it (P3: time to deliver the first packet); of flows that begin within the window. It asks " +
			"when its first SYN leaves its socket, by the capture above the routing daemon; without one when its " +
			"first SYN is on the interface or, where that is 0.5 s or more behind iperf3's start, at that start, as " +
			"the SYN then waited for its neighbour's address. Where there is no answer within the window there is " +
			"connect_censored_ms"}
	connectCensoredMs = definition{ConnectCensoredMs, "ms",
		"for how long the client had asked for its first connection when the window closed, or when it gave up " +
			"before, and had none: connect_time_ms would have been more (a censored time); absent where the client's " +
			"record does not say that it had none"}
	connectOffMs = definition{"connect_time_uncertainty_ms", "ms",
		"by how much connect_time_ms or connect_censored_ms may be wrong where no capture above the interface tells " +
			"when the client asked: counted from a SYN, too short by this at most, which is that SYN's distance from " +
			"iperf3's start; counted from iperf3's start, too long by this at most"}
	firstSegmentMs = definition{"first_segment_ms", "ms",
		"from a data stream's first SYN, as it leaves its socket, to the first payload byte at the receiver, mean of " +
			"the streams that delivered any. The control connection came before, so that a way was known; as certain " +
			"as one_way_delay_uncertainty_ms"}
	cbrFlows = definition{CBRFlows, "flows",
		"flows of kind cbr, all of the trial's, where both ends of each recorded the whole of it"}
	cbrDelivery = definition{CBRDelivery, "1",
		"datagrams of all flows of kind cbr that were due in their senders' windows and arrived, no later than 3 s " +
			"after their receivers' windows closed, ÷ all that were due then: what the kernel refused, for lack of a " +
			"route for example, is lost, and so is cbr_packets_unsent (P3, whose sources send on whatever the " +
			"network does)"}
	cbrUnsent = definition{CBRUnsent, "packets",
		"datagrams of all flows of kind cbr that were due in their senders' windows and were not sent, because the " +
			"sender's program did not run at that time"}
	cbrLatency = definition{CBRLatencyMs, "ms",
		"mean one-way delay of the datagrams that arrived in cbr_delivery_fraction, from handing one to the kernel " +
			"to its arrival, by the kernel's stamp where it made one (P3); as certain as each flow's " +
			"one_way_delay_uncertainty_ms, and absent where the clocks of a flow's ends were not compared"}
	cbrLatencyExcess = definition{CBRLatencyExcessMs, "ms",
		"how much cbr_latency_ms may be too long at most, because arrivals without a stamp of the kernel's have " +
			"their program's, which is later: what these contribute to the mean"}
	handshakeMs = definition{"handshake_ms", "ms",
		"from a data stream's first SYN, as it leaves its socket, to the SYN-ACK, mean of the streams that got one"}
	oneWayError = definition{OneWayUncertaintyMs, "ms",
		"sum of the two nodes' clock uncertainties over the window, their drift fitted: every one-way delay may " +
			"be wrong by ± this; no such delay is told where a clock was compared on one side of the window only and " +
			"may have drifted by over 10 ms, which takes 50 s"}
	nodesCaptured = definition{"nodes_captured", "nodes",
		"nodes of the trial whose captures are in the archive and can be read"}
	captureDropped = definition{CaptureDropped, "packets",
		"packets that the kernel dropped from the captures for lack of room, sum over nodes_captured"}
	captureFileDropped = definition{"capture_file_dropped", "packets",
		"packets that the largest size of a file, or the disk, left out of the captures, sum over the trial's nodes"}
	incompleteCaptures = definition{"captures_incomplete", "nodes",
		"nodes of the trial whose captures are not of the whole window: missing, failed, begun late, ended early, or " +
			"with packets that the file had no room for; figures that need them are absent. The report " +
			"says what each lacks"}
	unreadableCaptures = definition{CapturesUnreadable, "nodes",
		"nodes whose captures cannot be read; figures that need them are absent, and fieldmesh metrics says " +
			"where they are at fault"}
	routingPackets = definition{"routing_packets_per_s", "packets/s",
		"packets of the routing protocol, those with data left out, that the nodes sent in the window, sum over all " +
			"nodes of the trial; absent unless the captures of all are whole (P3: routing overhead)"}
	routingBytes = definition{"routing_bytes_per_s", "B/s",
		"bytes at IP of the packets in routing_packets_per_s, and of the headers that routing put before data " +
			"(routing_header_bytes_per_s), sum over all nodes of the trial (P3: routing overhead, with the routing " +
			"information carried by data packets)"}
	routingHeaders = definition{"routing_header_bytes_per_s", "B/s",
		"bytes of the headers that a routing protocol put before data, of packets that the nodes sent in the window, " +
			"at each hop: DSR's source routes, batman-adv's headers with the inner Ethernet header; sum over all " +
			"nodes of the trial; part of routing_bytes_per_s"}
	arpPackets = definition{"arp_packets_per_s", "packets/s",
		"ARP packets that the nodes sent in the window, sum over all nodes of the trial"}
)

const (
	betweenNewest = "from the newest sample at its open to the newest at its close, neither older than three beats " +
		"of the sampler"
	oneWayText = "one-way delay: from a packet's leaving its socket, by captures on the interface and on the " +
		"routing daemon's device, whichever has it first, UDP: by iperf3's stamp in it, to its arrival at the " +
		"receiver, over packets that arrived (P2: end-to-end delay of delivered data packets, here of " +
		"each transmission)"
	roundTripText = "round trip: at the sender, from a segment's leaving its socket, of those that were sent once, " +
		"to the ACK of its last byte"
)
