// Command guest runs a compiled test inside a virtual machine with one of
// Debian's own kernels, which have what the machine at hand may lack: 802.11
// radios (mac80211_hwsim), modules, namespaces of their own. It is the program
// behind `go test -exec`; README.md says how a test is written for it.
//
//	guest kernels DIR       fetch the kernels, and packages that some tests want, by
//	                        apt-get and unpack them below DIR
//	guest exec BINARY ARG…  boot, run BINARY in the guest, exit with its status
//
// It is its own /init: what it puts into the guest is itself, a few modules
// and the request. The guest's root is the host's, read-only, with all that
// is written kept in the guest's memory. What is in the guest when a test
// starts is the test's own affair (package hwsim).
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if os.Getpid() == 1 {
		initMain() // never returns
	}
	var err error
	code := 1
	switch {
	case len(os.Args) == 3 && os.Args[1] == "kernels":
		if err = fetchKernels(os.Args[2]); err == nil {
			err = fetchPackages(filepath.Join(os.Args[2], "packages"))
		}
		if err == nil {
			code = 0
		}
	case len(os.Args) >= 3 && os.Args[1] == "exec":
		code, err = execute(os.Args[2], os.Args[3:])
	default:
		err = fmt.Errorf("usage: guest kernels DIR | guest exec BINARY ARG…")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "guest: %v\n", err)
	}
	os.Exit(code)
}
