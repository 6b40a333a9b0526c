# AODV in ns-2: 100 bytes each 0.31 s, from 1.02 s to 60 s, to a node that is out of reach.
#   ns search.tcl TRACE
lassign $argv trace
set ns [new Simulator]
set out [open $trace w]
$ns trace-all $out
set topo [new Topography]
$topo load_flatgrid 2000 100
create-god 2
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
	-antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
	-channel [new Channel/WirelessChannel] -topoInstance $topo \
	-agentTrace ON -routerTrace ON -macTrace OFF -movementTrace OFF
foreach i {0 1} {
	set node($i) [$ns node]
	$node($i) random-motion 0
	$node($i) set X_ [expr 10.0 + 1500 * $i]
	$node($i) set Y_ 10.0
	$node($i) set Z_ 0.0
}
set udp [new Agent/UDP]
set sink [new Agent/Null]
$ns attach-agent $node(0) $udp
$ns attach-agent $node(1) $sink
$ns connect $udp $sink
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ 100
$cbr set interval_ 0.31
$cbr attach-agent $udp
$ns at 1.02 "$cbr start"
$ns at 60.0 "$cbr stop"
$ns at 100.0 "$ns flush-trace; close $out; exit 0"
$ns run
