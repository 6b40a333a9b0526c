# The manager's installer reads this, with MODPATH, ARCH, ui_print, abort and set_perm.
home=/data/local/fieldmesh
termux=/data/data/com.termux

[ "$ARCH" = arm64 ] || abort "This module is for arm64; this phone is $ARCH."
uid=$(stat -c %u $termux 2>/dev/null) ||
	abort "Termux is not installed. Install it from F-Droid, and in it: pkg install iperf3"
[ -x $termux/files/usr/bin/iperf3 ] || ui_print "! iperf3 is missing. In Termux: pkg install iperf3"
[ ! -e $termux/files/usr/var/service/fieldmesh/run ] || [ -e $termux/files/usr/var/service/fieldmesh/down ] ||
	abort "Termux runs the agent as a service. In Termux first: sv-disable fieldmesh"

mkdir -p $home
set_perm $home 0 0 0755
if [ ! -e $home/agent.yaml ]; then
	sed "s/@UID@/$uid/" "$MODPATH/agent.yaml" >$home/agent.yaml
fi
set_perm $home/agent.yaml 0 0 0644
set_perm "$MODPATH/fieldmesh-agent" 0 0 0755
ui_print "Reboot. Then, once, name the phone in $home/agent.yaml, and pair it:"
ui_print "  su -c '$home/fieldmesh-agent pair --config $home/agent.yaml'"
ui_print "The agent runs within ten seconds after that, and from boot on ever after."
