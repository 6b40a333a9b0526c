# P2's chain in ns-2: six nodes A to F in a row, one FTP from A to F for 360 s.
#   ns chain.tcl RATE SPACING_M SENSE_M MOVES ROUTING AGENT TRACE
# MOVES is of C at 50 s and of D at 100 s, at 10 m/s across the chain: stand, none; outM, to
# M metres, and they set off back at 250 s; home, to 1000 and 750 m, and at 250 s they are back.
lassign $argv rate spacing sense moves routing agent trace
lassign {6 6 1100} nodes columns depth_m
source [file join [file dirname [info script]] scene.tcl]
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
ftp 0 5
run
