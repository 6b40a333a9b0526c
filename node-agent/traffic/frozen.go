package traffic

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A process that its control group freezes gets no signal and shows none: a phone
// freezes apps in the background so. The group tells.

// lookFrozen is more often than what is judged lasts.
const lookFrozen = 200 * time.Millisecond

// watchFrozen notes when the process was first seen frozen, until it has ended.
func (p *Process) watchFrozen() {
	ticker := time.NewTicker(lookFrozen)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		if !frozen("/proc", "/sys/fs/cgroup", p.pid) {
			continue
		}
		p.mu.Lock()
		if !p.exited { // else its number may be another's
			p.frozenNs = new(p.clk.BootNs())
		}
		p.mu.Unlock()
		return
	}
}

// frozen reports whether a process's control group is frozen, itself or by one
// above it (cgroups(7)). What cannot be read says nothing.
func frozen(proc, sys string, pid int) bool {
	groups, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(groups)) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		switch {
		case number == "0" && controllers == "": // version 2, by itself or beside version 1
			for _, root := range []string{"", "unified"} {
				events, err := os.ReadFile(filepath.Join(sys, root, path, "cgroup.events"))
				if err == nil && bytes.Contains(events, []byte("frozen 1")) {
					return true
				}
			}
		case controllers == "freezer":
			state, err := os.ReadFile(filepath.Join(sys, "freezer", path, "freezer.state"))
			if err == nil && strings.TrimSpace(string(state)) != "THAWED" {
				return true
			}
		}
	}
	return false
}
