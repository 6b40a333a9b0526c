# The manager's installer reads this, with MODPATH, ARCH, ui_print, abort and set_perm.
home=/data/local/fieldmesh
termux=/data/data/com.termux
apps=/data/system/packages.list # Android's: an app, its user, ...

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
key() { sed -n "s/^$1: *[\"']\{0,1\}\([^\"'# ]*\).*/\1/p" $home/agent.yaml; }
user=$(key face_user | sed -n 's/^\([0-9]*\):3003$/\1/p')
if [ -z "$user" ] || [ "$user" = "$uid" ]; then
	:
elif [ "$user" -ge 10000 ] && [ -r $apps ] && ! grep -q "^[^ ]* $user " $apps; then # the user of an app that is gone
	ui_print "Termux was installed anew, as another user: what the agent keeps is given to it."
	state=$(key state_dir) keys=$(key keys_dir)
	sed -i "s/^face_user:.*/face_user: \"$uid:3003\"/" $home/agent.yaml
	for kept in "${state:-$home/state}/face" "${keys:-$home/keys}/node.key"; do
		[ ! -e "$kept" ] || chown -hR $uid:3003 "$kept"
	done
else
	ui_print "! face_user stays $user, which is not Termux's $uid. Wrong? Correct it in $home/agent.yaml."
fi
set_perm $home/agent.yaml 0 0 0644
set_perm "$MODPATH/fieldmesh-agent" 0 0 0755
ui_print "Reboot. Then, once, name the phone in $home/agent.yaml, and pair it:"
ui_print "  su -c '$home/fieldmesh-agent pair --config $home/agent.yaml'"
ui_print "The agent runs within ten seconds after that, and from boot on ever after."
