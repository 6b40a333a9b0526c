package threats

import (
	"testing"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What a node without root left as it was is told; which congestion control its sockets
// begin with is no fault, because iperf3 chooses another.
func TestNodesWithoutRootAreTold(t *testing.T) {
	run := func(p wire.Provenance) *evidence.Run {
		a := acceptedAt(1)
		a.Trial.TCP.Variant = "reno"
		a.Trial.Traffic = []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b"}}
		a.Node = map[string]wire.Provenance{"a": p}
		return &evidence.Run{Attempts: []evidence.Attempt{a}}
	}
	sysctls := func(save string) map[string]string {
		return map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_no_metrics_save": save}
	}
	for save, want := range map[string]string{"0": "a: its kernel keeps what it learns",
		"1": "a: its kernel keeps nothing", "": "a: it is not known whether"} {
		d := run(wire.Provenance{Privileges: wire.NoPrivileges, Sysctls: sysctls(save)})
		found, _ := withoutRoot(d)
		if found == nil {
			t.Fatalf("%q: no threat", save)
		}
		says(t, found.Text, want, "given up connecting", "IPv6 was left")
		if found, _ := congestion(d); found != nil {
			t.Errorf("%+v", found)
		}
	}
	d := run(wire.Provenance{Sysctls: sysctls("1")})
	if found, clear := withoutRoot(d); found != nil || clear != "" {
		t.Errorf("with root: %+v %q", found, clear)
	}
	if found, _ := congestion(d); found == nil {
		t.Error("with root, another congestion control is no threat")
	}
}
