package confine

import (
	"fmt"
	"runtime"

	"fieldmesh.dev/fieldmesh/node-agent/config"
)

// Means is one of those by which the face is confined. With Lacks it is not: Open is
// what whoever takes the face over may do then, and Cure what a person can do about it.
type Means struct {
	By    string `json:"by"`
	Lacks string `json:"lacks,omitempty"`
	Open  string `json:"open,omitempty"`
	Cure  string `json:"cure,omitempty"`
}

// Kernel returns by what this kernel can confine the face. It confines nothing.
func Kernel(cfg config.Config) []Means {
	version, noLandlock := landlockVersion(isApp(runtime.GOOS, cfg))
	return means(version, noLandlock, filters(), placesOf(cfg).wrapped)
}

func means(version int, noLandlock, noFilter error, script string) []Means {
	files, calls := Means{By: "Landlock"}, Means{By: "seccomp"}
	switch {
	case noLandlock != nil:
		files.Lacks = noLandlock.Error()
		files.Open = "open every file, and start every program, that the agent's user may"
		files.Cure = "Linux 5.19 or newer with Landlock (CONFIG_SECURITY_LANDLOCK, and landlock in lsm=) has it; " +
			"until then, keep nothing on this node that its user may read and others may not"
	case script != "":
		files.By = fmt.Sprintf("Landlock %d", version)
		files.Lacks = script + " is a script"
		files.Open = "start the machine's programs"
		files.Cure = "name iperf3's own program in agent.yaml (binaries)"
	default:
		files.By = fmt.Sprintf("Landlock %d", version)
	}
	if noFilter != nil {
		calls.Lacks = noFilter.Error()
		calls.Open = "trace processes of the agent's user, and make every system call that it may"
		calls.Cure = "a kernel with CONFIG_SECCOMP_FILTER has it (arm64, ARM, x86-64 and RISC-V)"
	}
	return []Means{files, calls}
}
