# P2's grid that stands, in ns-2: 25 nodes A to Y in rows of five, FTP from A to Y and from E to U
# for 360 s.
#   ns grid.tcl RATE SPACING_M SENSE_M ROUTING AGENT TRACE
# As chain.tcl beside it: nodes receive to 200 m and sense to SENSE_M.
lassign $argv rate spacing sense routing agent trace
Mac/802_11 set dataRate_ ${rate}Mb
if {$sense == 550} {
	Phy/WirelessPhy set RXThresh_ 8.91754e-10
} else {
	Phy/WirelessPhy set Pt_ 0.115435
}
Agent/TCP set packetSize_ 512
ns-random 1
set ns [new Simulator]
set out [open $trace w]
$ns trace-all $out
set topo [new Topography]
$topo load_flatgrid 1300 1000
create-god 25
set queue [expr {$routing eq "DSR" ? "CMUPriQueue" : "Queue/DropTail/PriQueue"}]
$ns node-config -adhocRouting $routing -llType LL -macType Mac/802_11 -ifqType $queue -ifqLen 50 \
	-antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
	-channel [new Channel/WirelessChannel] -topoInstance $topo \
	-agentTrace ON -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set i 0} {$i < 25} {incr i} {
	set node($i) [$ns node]
	$node($i) random-motion 0
	$node($i) set X_ [expr 10.0 + $i % 5 * $spacing]
	$node($i) set Y_ [expr 10.0 + $i / 5 * $spacing]
	$node($i) set Z_ 0.0
}
foreach {from to} {0 24 4 20} {
	set tcp [new Agent/$agent]
	set sink [new Agent/TCPSink]
	$ns attach-agent $node($from) $tcp
	$ns attach-agent $node($to) $sink
	$ns connect $tcp $sink
	set ftp [new Application/FTP]
	$ftp attach-agent $tcp
	$ns at 1.0 "$ftp start"
}
$ns at 360.0 "$ns flush-trace; close $out; exit 0"
$ns run
