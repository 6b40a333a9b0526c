# P2's grid that stands, in ns-2: 25 nodes A to Y in rows of five, FTP from A to Y and from E to U
# for 360 s.
#   ns grid.tcl RATE SPACING_M SENSE_M ROUTING AGENT TRACE
lassign $argv rate spacing sense routing agent trace
lassign {25 5 1000} nodes columns depth_m
source [file join [file dirname [info script]] scene.tcl]
ftp 0 24
ftp 4 20
run
