# What P2's scenes in ns-2 have in common: whoever sources it has set what the command
# line says (rate, spacing, sense, routing, agent, trace), how many nodes there are, in rows of
# how many columns, and how deep the field is.
#
# Nodes receive to 200 m and sense to `sense`: 550, as a script has it that sets RXThresh_, or
# 440, as one has it that sets Pt_. What is not set here is ns-2's own: RTS before every frame,
# a window of 20 packets.
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
$topo load_flatgrid 1300 $depth_m
create-god $nodes
set queue [expr {$routing eq "DSR" ? "CMUPriQueue" : "Queue/DropTail/PriQueue"}]
$ns node-config -adhocRouting $routing -llType LL -macType Mac/802_11 -ifqType $queue -ifqLen 50 \
	-antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
	-channel [new Channel/WirelessChannel] -topoInstance $topo \
	-agentTrace ON -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set i 0} {$i < $nodes} {incr i} {
	set node($i) [$ns node]
	$node($i) random-motion 0
	$node($i) set X_ [expr 10.0 + $i % $columns * $spacing]
	$node($i) set Y_ [expr 10.0 + $i / $columns * $spacing]
	$node($i) set Z_ 0.0
}

# ftp sends from the first second on.
proc ftp {from to} {
	global ns node agent
	set tcp [new Agent/$agent]
	set sink [new Agent/TCPSink]
	$ns attach-agent $node($from) $tcp
	$ns attach-agent $node($to) $sink
	$ns connect $tcp $sink
	set ftp [new Application/FTP]
	$ftp attach-agent $tcp
	$ns at 1.0 "$ftp start"
}

# run ends after 360 s.
proc run {} {
	global ns out
	$ns at 360.0 "$ns flush-trace; close $out; exit 0"
	$ns run
}
