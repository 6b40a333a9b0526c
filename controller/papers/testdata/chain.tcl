# P2's chain in ns-2: six nodes A to F in a row, one FTP from A to F for 360 s.
#   ns chain.tcl RATE SPACING_M SENSE_M MOVES ROUTING AGENT TRACE
# Nodes receive to 200 m and sense to SENSE_M: 550, as a script has it that sets
# RXThresh_, or 440, as one has it that sets Pt_. MOVES is of C at 50 s and of D at
# 100 s, at 10 m/s across the chain: stand, none; outM, to M metres, and they set off back
# at 250 s; home, to 1000 and 750 m, and at 250 s they are back. What is not set here is
# ns-2's own: RTS before every frame, a window of 20 packets.
lassign $argv rate spacing sense moves routing agent trace
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
$topo load_flatgrid 1300 1100
create-god 6
set queue [expr {$routing eq "DSR" ? "CMUPriQueue" : "Queue/DropTail/PriQueue"}]
$ns node-config -adhocRouting $routing -llType LL -macType Mac/802_11 -ifqType $queue -ifqLen 50 \
	-antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
	-channel [new Channel/WirelessChannel] -topoInstance $topo \
	-agentTrace ON -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set i 0} {$i < 6} {incr i} {
	set node($i) [$ns node]
	$node($i) random-motion 0
	$node($i) set X_ [expr 10.0 + $i * $spacing]
	$node($i) set Y_ 10.0
	$node($i) set Z_ 0.0
}
if {$moves ne "stand"} {
	set out_m 0
	scan $moves out%d out_m
	foreach {i at to} [expr {$out_m > 0 ? "2 50 $out_m 3 100 $out_m" : {2 50 1000 3 100 750}}] {
		set x [expr 10.0 + $i * $spacing]
		$ns at $at "$node($i) setdest $x [expr 10.0 + $to] 10"
		set back [expr {$out_m > 0 ? 250 : 250 - $to / 10.0}]
		$ns at $back "$node($i) setdest $x 10.0 10"
	}
}
set tcp [new Agent/$agent]
set sink [new Agent/TCPSink]
$ns attach-agent $node(0) $tcp
$ns attach-agent $node(5) $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 1.0 "$ftp start"
$ns at 360.0 "$ns flush-trace; close $out; exit 0"
$ns run
