# A chain in ns-2, nodes 200 m or SPACING_M apart, one flow from end to end.
#   ns chain.tcl HOPS RATE KIND WINDOW SEED [SPACING_M QUEUE TRACE]
# KIND: CBR, more than the chain carries, or Newreno, with a window of so many segments.
# Prints the payload that arrived in the 200 s from 105 s on, in kbit/s, and how many segments
# went again. DSDV finds the ways before the flow begins, and says nothing more for a day. What
# is not set here is ns-2's own: RTS before every frame, the radio, the queue.
lassign [concat $argv [lrange {200 Queue/DropTail/PriQueue /dev/null} [expr {[llength $argv] - 5}] end]] \
	hops rate kind window seed spacing_m queue trace
Mac/802_11 set dataRate_ ${rate}Mb
Agent/DSDV set perup_ 100000
Agent/TCP set packetSize_ 512
Agent/TCP set window_ $window
ns-random $seed
set ns [new Simulator]
set out [open $trace w]
$ns trace-all $out
set topo [new Topography]
$topo load_flatgrid 3000 100
create-god [expr {$hops + 1}]
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType $queue -ifqLen 50 \
	-antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
	-channel [new Channel/WirelessChannel] -topoInstance $topo \
	-agentTrace [expr {$trace eq "/dev/null" ? "OFF" : "ON"}] -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set i 0} {$i <= $hops} {incr i} {
	set node($i) [$ns node]
	$node($i) random-motion 0
	$node($i) set X_ [expr {10.0 + $spacing_m * $i}]
	$node($i) set Y_ 10.0
	$node($i) set Z_ 0.0
}
if {$kind eq "CBR"} {
	set from [new Agent/UDP]
	set to [new Agent/LossMonitor]
	set source [new Application/Traffic/CBR]
	$source set packetSize_ 512
	$source set interval_ [expr {512 * 8 / 1e6 / $rate}]
	proc arrived {} {global to; return [$to set npkts_]}
	proc again {} {return 0}
} else {
	set from [new Agent/TCP/$kind]
	set to [new Agent/TCPSink]
	set source [new Application/FTP]
	proc arrived {} {global from; return [$from set ack_]}
	proc again {} {global from; return [$from set nrexmitpack_]}
}
$ns attach-agent $node(0) $from
$ns attach-agent $node($hops) $to
$ns connect $from $to
$source attach-agent $from
$ns at 100.0 "$source start"
$ns at 105.0 {set before [arrived]}
$ns at 305.0 {puts "[expr {([arrived] - $before) * 512 * 8 / 200e3}] [again]"; $ns flush-trace; close $out; exit 0}
$ns run
