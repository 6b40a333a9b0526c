package confine

import (
	"errors"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"fieldmesh.dev/fieldmesh/node-agent/config"
)

// isApp reports whether the face runs as an app of Android's. Before Android 16 the filter of system calls that an
// app has ends whoever asks for Landlock. A face that root has started has no such filter.
func isApp(system string, cfg config.Config) bool { return system == "android" && cfg.Unprivileged() }

// landlockVersion returns the version that the kernel has, and changes nothing.
func landlockVersion(app bool) (version int, err error) {
	if app {
		return 0, errors.New("an app of Android's cannot ask for it")
	}
	if version, err = llsys.LandlockGetABIVersion(); err != nil {
		return 0, err // it is not there, or switched off
	}
	if version < 2 { // the library would then enforce nothing
		return 0, errors.New("the kernel has version 1, by which no file can be moved between folders")
	}
	return version, nil
}

// landlocked leaves this process, and what it starts, the files of p and no others.
// It returns the version that the kernel has.
func landlocked(p places, app bool) (version int, err error) {
	if version, err = landlockVersion(app); err != nil {
		return 0, err
	}
	const own = llsys.AccessFSReadFile | llsys.AccessFSReadDir | llsys.AccessFSWriteFile | llsys.AccessFSTruncate |
		llsys.AccessFSMakeDir | llsys.AccessFSMakeReg | llsys.AccessFSMakeSym | llsys.AccessFSMakeSock |
		llsys.AccessFSRemoveDir | llsys.AccessFSRemoveFile | llsys.AccessFSRefer
	rules := []landlock.Rule{
		landlock.PathAccess(own, p.write...), // and start nothing that lies there
		landlock.PathAccess(llsys.AccessFSReadFile|llsys.AccessFSWriteFile, "/dev/null"),
		landlock.PathAccess(llsys.AccessFSReadFile|llsys.AccessFSExecute, p.start...),
	}
	for _, path := range p.read {
		rights := landlock.AccessFSSet(llsys.AccessFSReadFile)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			rights |= llsys.AccessFSReadDir
		}
		rules = append(rules, landlock.PathAccess(rights, path).IgnoreIfMissing())
	}
	// Of what came later than files it says nothing: the face talks to whom it has to.
	if err := landlock.V5.BestEffort().RestrictPaths(rules...); err != nil {
		return 0, err
	}
	return version, nil
}
