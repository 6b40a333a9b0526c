#!/system/bin/sh
# The manager runs this at the boot after the module was removed: no agent runs.
home=/data/local/fieldmesh
$home/fieldmesh-agent restore --if-ended --config $home/agent.yaml
# Keys and records are the owner's; he removes them by: rm -r /data/local/fieldmesh
rm -f $home/fieldmesh-agent $home/alive $home/service.log $home/service.log.1
