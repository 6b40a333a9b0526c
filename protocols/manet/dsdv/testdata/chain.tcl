# DSDV in ns-2 on a chain of six: 100 bytes each second from end to end, from 1 s on. The third
# node is out of reach from 150 s to 300 s. Ends at 400 s.
#   ns chain.tcl SEED TRACE
lassign $argv seed trace
ns-random $seed
set ns [new Simulator]
set out [open $trace w]
$ns trace-all $out
set topo [new Topography]
$topo load_flatgrid 1300 5100
create-god 6
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
	-antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
	-channel [new Channel/WirelessChannel] -topoInstance $topo \
	-agentTrace ON -routerTrace ON -macTrace OFF -movementTrace OFF
for {set i 0} {$i < 6} {incr i} {
	set node($i) [$ns node]
	$node($i) random-motion 0
	$node($i) set X_ [expr 10.0 + 200 * $i]
	$node($i) set Y_ 10.0
	$node($i) set Z_ 0.0
}
$ns at 150.0 "$node(2) setdest 410 5010 1000000"
$ns at 300.0 "$node(2) setdest 410 10 1000000"
set udp [new Agent/UDP]
set sink [new Agent/Null]
$ns attach-agent $node(0) $udp
$ns attach-agent $node(5) $sink
$ns connect $udp $sink
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ 100
$cbr set interval_ 1
$cbr attach-agent $udp
$ns at 1.0 "$cbr start"
$ns at 400.0 "$ns flush-trace; close $out; exit 0"
$ns run
