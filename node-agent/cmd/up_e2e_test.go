//go:build e2e

package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"fieldmesh.dev/fieldmesh/internal/dnssd"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// node is a namespace in which `fieldmesh-agent up` runs. Until it is given
// keys its face ends at once, over and over; that must not touch the host process.
type node struct {
	ns   *testnet.NS
	path string
	cfg  config.Config
}

func newNode(t *testing.T) node {
	t.Helper()
	testnet.Need(t, "ip")
	a, b := testnet.NewNS(t, "upa"), testnet.NewNS(t, "upb")
	testnet.Veth(t, a, "wlan0", "192.168.9.1/24", b, "wlan0", "192.168.9.2/24")
	dir := testnet.Folder(t) // the face must be able to enter it
	n := node{ns: a, path: filepath.Join(dir, "agent.yaml")}
	text := fmt.Sprintf("node: car\ninterface: wlan0\nstate_dir: %s\nkeys_dir: %s\nface_user: \"%d:%d\"\n",
		filepath.Join(dir, "state"), filepath.Join(dir, "keys"), nobody, nobody)
	if err := os.WriteFile(n.path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var err error
	if n.cfg, err = config.Load(n.path); err != nil {
		t.Fatal(err)
	}
	return n
}

// giveKeys makes the node's keys, with which its face lives.
func (n node) giveKeys(t *testing.T) {
	t.Helper()
	dir := n.cfg.KeysDir
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, pin, err := keys.New("car")
	if err == nil {
		err = keys.SaveIdentity(dir, "node", certPEM, keyPEM)
	}
	if err != nil {
		t.Fatal(err)
	}
	authorized, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: pin})
	if err == nil {
		err = authorized.Save(filepath.Join(dir, "authorized.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "node.crt", "node.key", "authorized.json"} {
		if err := os.Chown(filepath.Join(dir, name), nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever takes the network face over lets in nobody: the folder of keys is
// root's, also one that an earlier version gave to the face.
//
//attack:face whoever has taken it over lets in a controller of its own, for good | whom a node lets in lies in a
//attack:and folder of root's, which the face reads
func TestE2ETheFaceCannotLetAnybodyIn(t *testing.T) {
	n := newNode(t)
	n.giveKeys(t)
	n.up(t)
	testnet.Await(t, 30*time.Second, "the face", func() bool { return n.half("face") != 0 })
	list := filepath.Join(n.cfg.KeysDir, "authorized.json")
	before, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	asFace := func(args ...string) error {
		c := exec.Command(args[0], args[1:]...)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody,
			Groups: []uint32{}}}
		c.Stdin = strings.NewReader("[]")
		return c.Run()
	}
	for _, args := range [][]string{{"tee", list}, {"tee", "-a", list}, {"rm", "-f", list}, {"mv", list, list + "1"},
		{"chmod", "666", list}, {"touch", filepath.Join(n.cfg.KeysDir, "controller.key")},
		{"chmod", "777", n.cfg.KeysDir}, {"mv", n.cfg.KeysDir, n.cfg.KeysDir + "1"}} {
		if asFace(args...) == nil {
			t.Errorf("the face's user may %v", args)
		}
	}
	after, err := os.ReadFile(list)
	if err != nil || string(after) != string(before) {
		t.Errorf("whom the node lets in has changed: %q, %v", after, err)
	}
	for _, name := range []string{"authorized.json", "node.crt", "node.key"} {
		if err := asFace("cat", filepath.Join(n.cfg.KeysDir, name)); err != nil {
			t.Errorf("the face's user cannot read %s: %v", name, err)
		}
	}
}

// Who begins the agent as root with a umask of 077 has a node whose face finds what it needs, and nobody a secret.
func TestE2EAStrictUmaskKeepsNoFaceOut(t *testing.T) {
	n := newNode(t)
	strict := func(c *exec.Cmd) {
		c.Path = "/bin/sh"
		c.Args = append([]string{"sh", "-c", `umask 077; exec "$@"`, "-"}, c.Args...)
	}
	first := filepath.Join(filepath.Dir(n.path), "etc", "agent.yaml")
	begin := n.agent(t, "init", "--config", first, "--node", "car")
	strict(begin)
	if out, err := begin.CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	n.up(t, strict)
	for path, want := range map[string]os.FileMode{filepath.Dir(first): 0o755, first: 0o644, n.cfg.StateDir: 0o755,
		n.cfg.HostDir(): 0o711, n.cfg.FaceDir(): 0o700, filepath.Join(n.cfg.JournalDir(), "journal"): 0o600,
		n.cfg.HostSocket(): 0o600, filepath.Join(n.cfg.StateDir, "up.lock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %o", path, info.Mode(), want)
		}
	}
}

// The programs that agent.yaml names run without privileges, and are told nothing of who asks.
//
//attack:local a phone's app user who puts a program in root's way
func TestE2EProbeAsRootRunsNoToolAsRoot(t *testing.T) {
	n := newNode(t)
	bin := filepath.Join(filepath.Dir(n.path), "bin") // anybody's
	tool, ran := filepath.Join(bin, "iperf3"), filepath.Join(bin, "ran")
	text := "#!/bin/sh\necho $(id -u) $(id -G) $(pwd) $SECRET >" + ran + "\necho iperf 3.99\n"
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Chmod(bin, 0o777),
		os.WriteFile(tool, []byte(text), 0o755)); err != nil {
		t.Fatal(err)
	}
	for keys, want := range map[string]string{
		"face_user: \"4242:3003\"":     "4242 3003 /\n",
		"face_user: no-such-user":      "65534 65534 /\n",
		"privileges: none\ngpsd: none": "65534 65534 /\n",
	} {
		keys = fmt.Sprintf("node: car\ninterface: wlan0\nstate_dir: %s\nbinaries: {iperf3: %s}\n%s\n", n.cfg.StateDir,
			tool, keys)
		if err := os.WriteFile(n.path, []byte(keys), 0o644); err != nil {
			t.Fatal(err)
		}
		probe := n.agent(t, "probe", "--config", n.path)
		probe.Env = append(os.Environ(), "SECRET=told")
		out, err := probe.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "iperf 3.99") {
			t.Errorf("%s\nprobe: %v\n%s", keys, err, out)
		}
		if as, err := os.ReadFile(ran); err != nil || string(as) != want {
			t.Errorf("%s\nthe tool ran as %q, want %q, %v", keys, as, want, err)
		}
		if err := os.Remove(ran); err != nil {
			t.Error(err)
		}
	}
}

// A folder that others use, too, is nobody's but theirs.
func TestE2EAFolderOfOthersIsLeftAlone(t *testing.T) {
	n := newNode(t)
	n.giveKeys(t)
	if err := os.WriteFile(filepath.Join(n.cfg.KeysDir, "passwd"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(n.cfg.KeysDir, 0o755); err != nil {
		t.Fatal(err)
	}
	n.up(t)
	info, err := os.Stat(n.cfg.KeysDir)
	if err != nil || info.Mode().Perm() != 0o755 || info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("the folder is %v now, %v", info, err)
	}
}

// agent makes a fieldmesh-agent process inside the node.
func (n node) agent(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is the agent when it is called so.
	link := filepath.Join(t.TempDir(), "fieldmesh-agent")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return n.ns.Command(context.WithoutCancel(t.Context()), link, args...)
}

func (n node) up(t *testing.T, set ...func(*exec.Cmd)) *exec.Cmd {
	t.Helper()
	cmd := n.agent(t, "up", "--config", n.path)
	for _, f := range set {
		f(cmd)
	}
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // when the test failed; else it has ended
		_ = cmd.Wait()
		// Its halves end a moment later, and write into the node's folder until then.
		const ends = 10 * time.Second
		for until := time.Now().Add(ends); n.half("host")+n.half("face") != 0 && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("up:\n%s", text)
		}
	})
	testnet.Await(t, 30*time.Second, "the host process answers", func() bool {
		_, err := host.Dial(n.cfg.HostSocket()).Status(t.Context())
		return err == nil
	})
	return cmd
}

// half finds a running half of the node; 0 when there is none.
func (n node) half(name string) int {
	for _, pid := range testnet.Pids(n.ns.Name) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(line), "fieldmesh-agent\x00"+name+"\x00") {
			return pid
		}
	}
	return 0
}

func (n node) change(t *testing.T) {
	t.Helper()
	_, err := host.Dial(n.cfg.HostSocket()).Apply(t.Context(), host.ScopeRun, []change.Change{
		change.Address{Interface: "wlan0", Prefix: netip.MustParsePrefix("10.77.0.1/24")},
		change.Sysctl{Key: "net.ipv4.tcp_congestion_control", Value: "reno"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestE2EUpKeepsTheHalvesRunningAndRestores(t *testing.T) {
	n := newNode(t)
	before := testnet.Snapshot(t, n.ns.Name)
	cmd := n.up(t)
	n.change(t)
	if out, err := n.agent(t, "up", "--config", n.path).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "another fieldmesh-agent runs with state_dir") {
		t.Errorf("a second agent: %v\n%s", err, out)
	}

	// SIGKILL of the host process: the next one starts by restoring.
	first := n.half("host")
	if first == 0 {
		t.Fatal("no host process")
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 30*time.Second, "a new host process has restored", func() bool {
		s, err := host.Dial(n.cfg.HostSocket()).Status(t.Context())
		return err == nil && strings.Contains(s.Detail, "2 undone, 0 failed")
	})
	if after := testnet.Snapshot(t, n.ns.Name); after != before {
		t.Errorf("after the host's crash the machine is\n%s\nwas\n%s", after, before)
	}

	n.change(t)
	out, err := n.agent(t, "restore", "--config", n.path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "undone: address 10.77.0.1/24 on wlan0\n") {
		t.Errorf("restore by hand beside the agent: %v\n%s", err, out)
	}
	if s, err := host.Dial(n.cfg.HostSocket()).Status(t.Context()); err != nil || s.ByHand == "" {
		t.Errorf("that it was by hand is not told: %+v, %v", s, err)
	}

	n.change(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the face, without keys, may end with an error of its own
	if after := testnet.Snapshot(t, n.ns.Name); after != before {
		t.Errorf("after SIGTERM the machine is\n%s\nwas\n%s", after, before)
	}
	if n.half("host") != 0 || n.half("face") != 0 {
		t.Error("a half lives on")
	}
}

// The agent of a package ends with whoever holds its standard input, and until it
// has ended, a restore by a script takes nothing from it.
func TestE2EUpEndsWithItsInput(t *testing.T) {
	n := newNode(t)
	before := testnet.Snapshot(t, n.ns.Name)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := n.up(t, func(c *exec.Cmd) { c.Args, c.Stdin = append(c.Args, "--until-eof"), read })
	n.change(t)
	during := testnet.Snapshot(t, n.ns.Name)
	out, err := n.agent(t, "restore", "--if-ended", "--config", n.path).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing is put back: the agent with state_dir "+n.cfg.StateDir) {
		t.Errorf("a script's restore beside the agent: %v\n%s", err, out)
	}
	if now := testnet.Snapshot(t, n.ns.Name); now != during {
		t.Errorf("a script's restore beside the agent changed\n%s", testnet.Diff(during, now))
	}
	if err := errors.Join(read.Close(), write.Close()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the face, without keys, may end with an error of its own
	if after := testnet.Snapshot(t, n.ns.Name); after != before {
		t.Errorf("after its input's end the machine is\n%s\nwas\n%s", after, before)
	}
	out, err = n.agent(t, "restore", "--if-ended", "--config", n.path).CombinedOutput()
	if err != nil || string(out) != "nothing to put back\n" {
		t.Errorf("a script's restore after the agent's end: %v\n%s", err, out)
	}
}

// confined is the process of a face that has confined itself; 0: none.
func (n node) confined() int {
	pid := n.half("face")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || !strings.Contains(string(text), "Seccomp:\t2\n") {
		return 0
	}
	return pid
}

// The face too, which begins again as the same process when it has confined itself.
func TestE2EAKilledUpTakesItsHalvesAlong(t *testing.T) {
	for range 5 { // on whichever thread it does so
		killedUp(t)
	}
}

func killedUp(t *testing.T) {
	t.Helper()
	n := newNode(t)
	n.giveKeys(t)
	before := testnet.Snapshot(t, n.ns.Name)
	cmd := n.up(t)
	n.change(t)
	testnet.Await(t, 30*time.Second, "the face is confined", func() bool { return n.confined() != 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	testnet.Await(t, 30*time.Second, "the halves end", func() bool {
		return n.half("host") == 0 && n.half("face") == 0
	})
	if after := testnet.Snapshot(t, n.ns.Name); after != before {
		t.Errorf("the machine is\n%s\nwas\n%s", after, before)
	}
	out, err := n.agent(t, "restore", "--config", n.path).CombinedOutput()
	if err != nil || string(out) != "nothing to put back\n" {
		t.Errorf("restore: %v\n%s", err, out)
	}
}

//attack:face the network face taken over | no capability, no way to one
//attack:face whoever has taken it over reaches for more of the kernel: name spaces, io_uring, BPF, keys
func TestE2ETheFaceHasNoPrivileges(t *testing.T) {
	n := newNode(t)
	n.giveKeys(t)
	cmd := n.up(t)
	var status string
	testnet.Await(t, 30*time.Second, "a look at the face", func() bool {
		pid := n.half("face")
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		status = string(text)
		return pid != 0 && err == nil && strings.Contains(status, "Seccomp:\t2\n") // once it has confined itself
	})
	for _, want := range []string{
		"Uid:\t65534\t65534\t65534\t65534\n", "Gid:\t65534\t65534\t65534\t65534\n", "Groups:\t \n",
		"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "NoNewPrivs:\t1\n",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("the face's status lacks %q:\n%s", want, status)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// On a phone iperf3 comes when its owner has unlocked it, which is after the agent began.
func TestE2EAProgramThatComesLaterMayBeStarted(t *testing.T) {
	if _, err := llsys.LandlockGetABIVersion(); err != nil {
		t.Skipf("nothing is kept from being started here: Landlock: %v", err)
	}
	n := newNode(t)
	n.giveKeys(t)
	late := filepath.Join(filepath.Dir(n.path), "iperf3")
	config, err := os.OpenFile(n.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(config, "binaries: {iperf3: %s}\n", late)
	if err := errors.Join(err, config.Close()); err != nil {
		t.Fatal(err)
	}
	cmd := n.up(t)
	var first int
	testnet.Await(t, 30*time.Second, "the face is confined", func() bool {
		first = n.confined()
		return first != 0
	})
	program, err := os.ReadFile("/bin/true")
	if err == nil {
		err = os.WriteFile(late, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 60*time.Second, "a face that may start the program", func() bool {
		now := n.confined()
		return now != 0 && now != first
	})
	second := n.confined()
	time.Sleep(12 * time.Second) // more than two looks
	if now := n.confined(); now != second {
		t.Errorf("the face began again as process %d; it was %d, and nothing more had come", now, second)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// An app finds the agent where it is now, though not over the interface under test.
func TestE2EAnAgentIsFoundAtItsNewAddress(t *testing.T) {
	n := newNode(t)
	n.giveKeys(t)
	phone, mesh := testnet.NewNS(t, "upp"), testnet.NewNS(t, "upm")
	testnet.Veth(t, n.ns, "usb0", "192.168.42.7/24", phone, "usb0", "192.168.42.1/24")
	n.ns.Run(t, "ip", "link", "delete", "wlan0")
	testnet.Veth(t, n.ns, "wlan0", "192.168.9.1/24", mesh, "wlan0", "192.168.9.2/24")
	n.up(t)
	identity, err := keys.LoadIdentity(n.cfg.KeysDir)
	if err != nil {
		t.Fatal(err)
	}
	found := func(address string) {
		t.Helper()
		testnet.Await(t, 30*time.Second, "the agent is found at "+address, func() bool {
			return slices.Equal(phone.Services(t, "192.168.42.1", dnssd.Type, 300*time.Millisecond),
				[]string{address + ":7443 pin=" + identity.Pin})
		})
	}
	found("192.168.42.7")
	n.ns.Run(t, "ip", "address", "flush", "dev", "usb0")
	n.ns.Run(t, "ip", "address", "add", "192.168.42.99/24", "dev", "usb0")
	found("192.168.42.99")
	if got := mesh.Services(t, "192.168.9.2", dnssd.Type, time.Second); len(got) != 0 {
		t.Errorf("over the interface under test: %v", got)
	}

	// While a controller has the node nothing is answered: usb0 may lead into the mesh, for all the agent knows.
	lease := func(ttl float64) {
		t.Helper()
		request, err := http.NewRequest(http.MethodPut, "https://192.168.42.99:7443/v1/lease",
			strings.NewReader(testnet.JSON(t, wire.Lease{Holder: "car", TTLS: ttl})))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		var conn net.Conn
		phone.Do(t, func() (err error) {
			conn, err = net.Dial("tcp", request.URL.Host)
			return err
		})
		c := http.Client{Transport: &http.Transport{TLSClientConfig: keys.ClientTLS(identity, identity.Pin),
			DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
		defer c.CloseIdleConnections()
		response, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Fatal(response.Status)
		}
	}
	lease(600)
	if got := phone.Services(t, "192.168.42.1", dnssd.Type, time.Second); len(got) != 0 {
		t.Errorf("while a controller has it: %v", got)
	}
	lease(0)
	found("192.168.42.99")
}
