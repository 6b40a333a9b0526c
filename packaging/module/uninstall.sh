#!/system/bin/sh
# The manager runs this at the boot after the module was removed: no agent runs. Android
# may not begin before this ends, and what is Android's is put back once it is there. An
# agent that could not put the phone back stays; by hand then, in a root shell:
# /data/local/fieldmesh/fieldmesh-agent restore --config /data/local/fieldmesh/agent.yaml
home=/data/local/fieldmesh
{
	# Keys and records are the owner's; he removes them by: rm -r /data/local/fieldmesh
	$home/fieldmesh-agent restore --if-ended --config $home/agent.yaml &&
		rm -f $home/fieldmesh-agent $home/alive $home/service.log $home/service.log.1
} </dev/null >/dev/null 2>&1 &
