#!/system/bin/sh
# The manager starts this at boot, before the phone is unlocked. It keeps the agent
# running until the module is disabled or removed in the manager, or this shell ends:
# a second one alone holds the pipe open that the agent reads, and ends with either.
module=${0%/*}
home=/data/local/fieldmesh
agent=$home/fieldmesh-agent
config=$home/agent.yaml

unwanted() { [ -e "$module/disable" ] || [ -e "$module/remove" ] || [ ! -e "$module/module.prop" ]; }

# The log of the agent's present life, and of the one before.
log() {
	[ ! -e $home/service.log ] || mv $home/service.log $home/service.log.1
	exec >$home/service.log 2>&1 </dev/null
}

# As long as the agent runs, the phone does not sleep between trials. The lock is no process's: it ends by unlock alone.
stay_awake() { [ ! -w /sys/power/wake_$1 ] || echo fieldmesh >/sys/power/wake_$1; }

mkdir -p $home
log
# Its network half runs as Termux's user, who cannot look into the module's folder.
cp "$module/fieldmesh-agent" $agent.new && chown 0:0 $agent.new && chmod 755 $agent.new && mv $agent.new $agent

while ! unwanted; do
	$agent restore --if-ended --config $config
	rm -f $home/alive
	mkfifo -m 600 $home/alive || exit 1
	exec 3<>$home/alive 4<$home/alive
	$agent up --until-eof --config $config <&4 3>&- 4<&- &
	up=$!
	{
		while ! unwanted && [ -d /proc/$$ ]; do sleep 2; done
		exec 3>&-
		while [ -d /proc/$up ]; do sleep 2; done
		stay_awake unlock
	} 4<&- &
	holder=$!
	exec 3>&- 4<&-
	stay_awake lock
	wait $up
	stay_awake unlock
	kill $holder
	wait $holder
	unwanted || { sleep 10; log; }
done
$agent restore --if-ended --config $config
