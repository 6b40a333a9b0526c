//go:build guest

package radios

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// programs is the folder of the built programs.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

const nobody = 65534

// node is a namespace with a radio, an agent and an interface for control.
type node struct {
	name  string
	ns    *testnet.NS
	radio hwsim.Radio
	dir   string
	agent *exec.Cmd
}

// rig is a handful of nodes with radios, and a network to control them by.
type rig struct {
	dir   string
	nodes []*node
	ctl   *testnet.NS
}

// newRig makes the nodes. Their radios are up as a laptop's are, in managed
// mode and in no network.
func newRig(t *testing.T, names ...string) *rig {
	t.Helper()
	hwsim.NeedGuest(t)
	return newRigIn(t, testnet.Folder(t), names...)
}

// newRigIn makes them with a folder that may hold the keys, the configurations
// and the state of nodes of an earlier boot.
func newRigIn(t *testing.T, dir string, names ...string) *rig {
	t.Helper()
	radios := hwsim.Load(t, len(names))
	r := &rig{dir: dir, ctl: testnet.NewNS(t, "ctl")}
	r.ctl.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	r.ctl.Up(t, "br0", "10.213.252.1/24")
	_, err := os.Stat(r.fleet())
	known := err == nil
	if known {
		r.moveControl(t)
	} else if _, err := fleet.Init(filepath.Dir(r.fleet())); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		n := &node{name: name, ns: testnet.NewNS(t, name), radio: radios[i], dir: filepath.Join(r.dir, name)}
		address := fmt.Sprintf("10.213.252.%d", 11+i)
		testnet.Veth(t, n.ns, "ctl0", address+"/24", r.ctl, name, "")
		r.ctl.Run(t, "ip", "link", "set", name, "master", "br0")
		n.radio.Move(t, n.ns, "wlan0")
		n.ns.Run(t, "ip", "link", "set", "wlan0", "up")
		n.ns.Run(t, "ip", "addr", "add", fmt.Sprintf("192.168.7.%d/24", 1+i), "dev", "wlan0")
		if !known {
			r.configure(t, n, address+":7443")
		}
		r.nodes = append(r.nodes, n)
	}
	return r
}

func (r *rig) fleet() string { return filepath.Join(r.dir, "fleet", "fleet.yaml") }

// moveControl names this boot's namespace for control in the fleet's file.
func (r *rig) moveControl(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(r.fleet())
	if err == nil {
		err = os.WriteFile(r.fleet(), regexp.MustCompile(`netns: .*`).ReplaceAll(text, []byte("netns: "+r.ctl.Name)),
			0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// configure gives a node its keys, which the agent's unprivileged half owns,
// and its agent.yaml.
func (r *rig) configure(t *testing.T, n *node, address string) {
	t.Helper()
	bundle, err := fleet.Issue(filepath.Dir(r.fleet()), n.name, address, fleet.IssueOptions{Netns: r.ctl.Name})
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(n.dir, "keys")
	if err := os.CopyFS(keys, os.DirFS(bundle)); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(keys, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			err = os.Chmod(path, 0o600)
		}
		if err == nil {
			err = os.Chown(path, nobody, nobody)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Without KVM everything is late; the free memory is the disk here.
	config := fmt.Sprintf("node: %s\nlisten: %s\nstate_dir: %s/state\ninterface: wlan0\ncontrol_interface: "+
		"ctl0\nface_user: nobody\nkeys_dir: %s\nquota_bytes: 100000000\nquota_free_bytes: 10000000\n",
		n.name, address, n.dir, keys)
	if err := os.WriteFile(filepath.Join(n.dir, "agent.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
}

// start starts a node's agent; it ends with the test.
func (n *node) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(n.dir, "agent.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	cmd := n.ns.Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"), "up", "--config",
		filepath.Join(n.dir, "agent.yaml"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.agent = cmd
	t.Cleanup(func() {
		n.stop()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("agent of %s:\n%s", n.name, text)
		}
	})
}

// stop ends the agent in order; it may be called twice.
func (n *node) stop() {
	if n.agent.ProcessState == nil {
		_ = n.agent.Process.Signal(syscall.SIGTERM) // it may be ending just now
		_ = n.agent.Wait()
	}
}

// kill ends all of the agent's processes as a loss of power would.
func (n *node) kill(t *testing.T) {
	t.Helper()
	// Stopped first, it neither starts what is killed again nor lets its end
	// tell the others to end in order.
	_ = n.agent.Process.Signal(syscall.SIGSTOP)
	for _, pid := range testnet.Pids(n.ns.Name) {
		if pid != n.agent.Process.Pid {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = n.agent.Process.Kill()
	_ = n.agent.Wait()
	for until := time.Now().Add(30 * time.Second); len(testnet.Pids(n.ns.Name)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("killed processes of %s are still there: %v", n.name, testnet.Pids(n.ns.Name))
		}
	}
}

// Lines of iw that are not a setting; the power of an interface in no network
// is that of the channel it was on last.
var numbers = regexp.MustCompile(`(?m)^\s*(ifindex|wdev|multicast TXQ|qsz-byt|0\t|txpower).*\n`)

var retries = regexp.MustCompile(`(?m)(^\s*(RTS|Retry|Fragmentation).*\n)+`)

// snapshot is the canonical state of a node, its radio's settings and the
// services that run there included.
func (n *node) snapshot(t *testing.T) string {
	t.Helper()
	return testnet.Snapshot(t, n.ns.Name) + numbers.ReplaceAllString(n.radio.IW(t, "dev"), "") +
		n.radio.IW(t, "dev", "wlan0", "get", "power_save") + retries.FindString(n.radio.IW(t, "phy", n.radio.Phy,
		"info")) + n.services()
}

// services are the programs that run at a node beside the agent's own processes.
func (n *node) services() string {
	var out []string
	for _, pid := range testnet.Pids(n.ns.Name) {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil { // it has just ended
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // the same
		if name := filepath.Base(exe); name != "fieldmesh-agent" || strings.Contains(string(line), "\x00route\x00") {
			out = append(out, "service "+name+"\n")
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// becomes waits until the state is what it was: addresses that the kernel
// makes by itself are there some time after the link.
func (n *node) becomes(t *testing.T, when, before string) {
	t.Helper()
	n.compare(t, when, before, func() string { return n.snapshot(t) })
}

// joins has the radio be in an ad hoc cell.
func (n *node) joins(t *testing.T, bssid string) {
	t.Helper()
	n.ns.Run(t, "ip", "link", "set", "wlan0", "down")
	n.radio.IW(t, "dev", "wlan0", "set", "type", "ibss")
	n.ns.Run(t, "ip", "link", "set", "wlan0", "up")
	n.radio.IW(t, "dev", "wlan0", "ibss", "join", "road", "2437", "NOHT", "fixed-freq", bssid)
}

func (n *node) compare(t *testing.T, when, before string, snapshot func() string) {
	t.Helper()
	if after := testnet.Settled(20*time.Second, before, snapshot); after != before {
		t.Errorf("%s, %s is not as it was:\n%s", when, n.name, testnet.Diff(before, after))
	}
}

func (r *rig) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(strings.TrimLeft(text, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
