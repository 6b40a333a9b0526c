package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// packages are Debian's managers of Wi-Fi and what they need beyond a plain
// installation. A guest puts them over its root (hwsim.Managers). They are not
// installed: a machine that runs tests shall not get a manager of its network.
func packages() []string {
	return []string{
		"network-manager", "wpasupplicant", "dbus", "dbus-daemon", "libdbus-1-3",
		"libnm0", "libndp0", "libteamdctl0", "libmm-glib0", "libbluetooth3", "libcurl3-gnutls", "libjansson4",
		"libpsl5",
		"libpcsclite1", "libnl-3-200", "libnl-genl-3-200", "libnl-route-3-200", "libreadline8", "libglib2.0-0",
	}
}

// unwanted are folders that no program reads.
func unwanted() []string {
	return []string{"usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/bash-completion",
		"usr/share/lintian"}
}

// fetchPackages unpacks the packages below dir, unless they are there.
func fetchPackages(dir string) error {
	dir, err := filepath.Abs(dir) // commands run in other folders
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	root := filepath.Join(work, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "guest: fetching %s\n", strings.Join(packages(), " "))
	if _, err := command(work, "apt-get", append([]string{"download", "-q"}, packages()...)...); err != nil {
		return err
	}
	debs, _ := filepath.Glob(filepath.Join(work, "*.deb")) // only a bad pattern is an error
	for _, deb := range debs {
		if _, err := command(work, "dpkg-deb", "-x", deb, root); err != nil {
			return err
		}
	}
	for _, name := range []string{"lib", "sbin"} { // links to those below /usr where they are put
		if _, err := command(root, "cp", "-a", name+"/.", "usr/"+name); err != nil {
			return err
		}
	}
	for _, name := range append([]string{"lib", "sbin", "var"}, unwanted()...) {
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	if err := os.Rename(root, dir); err != nil {
		return err
	}
	return os.RemoveAll(work)
}
