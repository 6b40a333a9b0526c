//go:build e2e

package refusals

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestE2EStrangersAndTheClock has two agents that are well. What is wrong is
// what the controller brings along.
//
//attack:network another machine in the node's place
func TestE2EStrangersAndTheClock(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "")
	d.up(t, "bravo", "")
	good, err := os.ReadFile(d.path("fleet", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	t.Run("the fleet pins another key", func(t *testing.T) {
		pin := regexp.MustCompile(`pin: [0-9a-f]{64}`)
		other := strings.Replace(string(good), pin.FindString(string(good)), "pin: "+strings.Repeat("a", 64), 1)
		fleet := write(t, d.path("fleet"), "pinned.yaml", other)
		d.run(t, patient, "--fleet", fleet, "--patience", "1h").refused(t, // an hour: it must not wait
			"node alpha: key: ask status at 10.98.0.1:7443: it answered with key ", ", the fleet file pins "+
				strings.Repeat("a", 64),
			"; if it was paired again, start its agent again; if its keys were copied there by hand, correct its pin; "+
				"otherwise this is another machine\n")
		d.noRun(t)
	})
	t.Run("a controller that the agents do not know", func(t *testing.T) {
		mustRun(t, program("fieldmesh", "keys", "init", "--dir", d.path("stranger")))
		fleet := write(t, d.path("fleet"), "stranger.yaml", strings.Replace(string(good), "keys: .",
			"keys: "+d.path("stranger"), 1))
		d.run(t, patient, "--fleet", fleet, "--patience", "1h").refused(t,
			"node alpha: key: ask status at 10.98.0.1:7443: it does not know our key ",
			"node bravo: key: ask status at 10.98.0.2:7443: it does not know our key ",
			"; copy the bundle that `fieldmesh keys issue` made to the node\n")
		d.noRun(t)
	})
	t.Run("clocks cannot be aligned within the limit", func(t *testing.T) {
		d.run(t, standing+"acceptance: {clock_error_ms_max: 0.00001, attempts_max: 1}\n").refused(t,
			"node alpha: clock: its clock can be aligned only within ± ", " ms, the limit is 1e-05 ms; use a faster "+
				"control link, or raise acceptance.clock_error_ms_max\n",
			"node bravo: clock: ")
		d.noRun(t)
	})
	t.Run("a variant that the kernel has not", func(t *testing.T) {
		available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
		if err != nil {
			t.Fatal(err)
		}
		lacks := func(variant string) bool { return !slices.Contains(strings.Fields(string(available)), variant) }
		variants := []string{"yeah", "nv", "lp", "cdg"}
		i := slices.IndexFunc(variants, lacks)
		if i < 0 {
			t.Skip("needs a kernel that lacks one of", variants)
		}
		d.run(t, strings.Replace(patient, "reno", variants[i], 1)).refused(t,
			`node alpha: tcp: congestion control "`+variants[i]+`" is not available, only `,
			"; load its kernel module on the node, or choose another variant\n")
		d.noRun(t)
	})
}

func TestE2EAgentsWithoutTheirTools(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "binaries: {iperf3: /nonexistent/iperf3}\n")
	bravo := d.up(t, "bravo", "")
	t.Run("no iperf3", func(t *testing.T) {
		d.run(t, patient).refused(t, "the fleet cannot run this plan:\n  node alpha: iperf3: no iperf3 at "+
			"/nonexistent/iperf3; install it (apt-get install iperf3), or correct `binaries` in the configuration\n")
		d.noRun(t)
	})
	t.Run("an agent that does not run", func(t *testing.T) {
		_ = bravo.Stop(t, syscall.SIGTERM)
		d.run(t, patient).refused(t, "node bravo: reach: ask status at 10.98.0.2:7443: connection refused; is the "+
			"agent running there? start it with `fieldmesh-agent up`\n")
		d.noRun(t)
	})
}

// TestE2EPacketsThatWouldLeaveElsewhere: another interface, or a VPN's rule, has
// the mesh's network.
func TestE2EPacketsThatWouldLeaveElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string // of ip
		want  string
	}{
		"the network of another interface": {[]string{"route add 10.77.0.0/24 dev ctl0"},
			"node alpha: route: packets to 10.77.0.2 leave by ctl0 and not by wlan0: the kernel has a route to " +
				"10.77.0.0/24 in table 254; take that network away from ctl0, or give the mesh another one " +
				"(`mesh_address` in the campaign)\n"},
		"a VPN's table": {[]string{"route add default dev ctl0 table 52", "rule add pref 5270 lookup 52"},
			"node alpha: route: packets to 10.77.0.2 leave by ctl0 and not by wlan0: the kernel has a route to " +
				"0.0.0.0/0 in table 52; end what made the routing rules for table 52 (`ip rule` lists them), as a " +
				"VPN, or have it leave 10.77.0.0/24 out\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			for _, line := range c.lines {
				d.spaces["alpha"].Run(t, "ip", strings.Fields(line)...)
			}
			d.before["alpha"] = testnet.Snapshot(t, d.spaces["alpha"].Name)
			d.up(t, "alpha", "")
			d.up(t, "bravo", "")
			d.run(t, patient).refused(t, c.want)
			d.noRun(t)
		})
	}
}

// TestE2EControlByTheRadioUnderTest: the interface by which the controller reaches
// the node is to leave its network.
func TestE2EControlByTheRadioUnderTest(t *testing.T) {
	d := newDesk(t)
	for i, name := range []string{"alpha", "bravo"} {
		for _, line := range []string{"addr del 10.98.0.%d/24 dev ctl0", "addr add 10.98.0.%d/24 dev wlan0"} {
			d.spaces[name].Run(t, "ip", strings.Fields(fmt.Sprintf(line, i+1))...)
		}
		d.before[name] = testnet.Snapshot(t, d.spaces[name].Name)
	}
	caps, err := json.Marshal(wire.Feedback{Caps: &wire.Caps{Driver: "nl80211", Modes: []string{"adhoc"},
		Channels: []int{6}}})
	if err != nil {
		t.Fatal(err)
	}
	radio, err := net.Listen("unix", d.path("radio.sock"))
	if err == nil {
		err = os.Chmod(d.path("radio.sock"), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = radio.Close() })
	go func() {
		for {
			conn, err := radio.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(append(caps, '\n')) // the agent may have gone; what it has open ends with it
		}
	}()
	d.up(t, "alpha", "feedback_socket: "+d.path("radio.sock")+"\n")
	d.up(t, "bravo", "")
	d.run(t, strings.Replace(patient, "{mode: none}", "{mode: adhoc, standard: 802.11g, channel: 6, ssid: mesh}", 1)).
		refused(t, "node alpha: control: it is reached by wlan0, and wlan0 leaves its own network for the run, on a "+
			"phone with the whole of Android's Wi-Fi; reach it by another interface")
	d.noRun(t)
}

// TestE2ENoFix: the shipped campaign for a desk waits for a speed.
func TestE2ENoFix(t *testing.T) {
	testnet.Need(t, "gpsd")
	d := newDesk(t)
	d.up(t, "alpha", "")
	d.up(t, "bravo", "")
	campaign, err := os.ReadFile(filepath.Join("..", "..", "campaigns", "stationary-check.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("no gpsd", func(t *testing.T) {
		d.run(t, string(campaign)).refused(t, "node alpha: gps: gpsd does not answer at 127.0.0.1:2947; start gpsd, "+
			"or correct `gpsd` in the configuration\n")
		d.noRun(t)
	})
	t.Run("no fix", func(t *testing.T) {
		d.blindGPSD(t, "alpha")
		testnet.Await(t, 30*time.Second, "the agent hears of its blindness", func() bool {
			o := finish(t, d.inside("alpha", "fieldmesh", "nodes", "--fleet", d.path("fleet", "fleet.yaml")))
			return strings.Contains(o.stdout, "alpha: gps: no fix")
		})
		o := d.run(t, string(campaign), "--patience", "3s")
		o.refused(t, "node alpha: gps: no fix (mode 1); give the receiver a view of the sky and wait\n",
			"waiting, at most 3s", `found="no fix (mode 1)"`)
		d.noRun(t)
	})
}

// TestE2ERoadsideWithoutAPlace: the car's start is measured from the roadside's phone, whose place neither an app nor
// the shipped campaign tells.
func TestE2ERoadsideWithoutAPlace(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "gpsd: none\n")
	d.up(t, "bravo", "gpsd: none\n")
	campaign, err := os.ReadFile(filepath.Join("..", "..", "campaigns", "velocity-phones.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const asked = "find where the roadside node stands"
	d.run(t, string(campaign), "--place", "road").refused(t, asked+": node bravo: no app tells where the node is, "+
		"and a fresh 3-D fix is needed; give course.site_lat_deg and course.site_lon_deg, or the roadside node a "+
		"receiver, or an app, that has a fix")
	d.noRun(t)
	const heading = "heading_deg: 90"
	told := strings.Replace(string(campaign), heading, heading+", site_lat_deg: 50, site_lon_deg: 8", 1)
	o := d.run(t, told, "--place", "road")
	o.refused(t, "node alpha: gps: no app tells where the node is")
	if strings.Contains(o.stderr, asked) || strings.Contains(o.stderr, "bravo: gps") {
		t.Error("with the place in the campaign it asks for it all the same")
	}
	d.noRun(t)
}

// TestE2EOneHalfWithAnOldConfiguration: only what faces the network was started again after an edit.
func TestE2EOneHalfWithAnOldConfiguration(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "")
	d.up(t, "bravo", "")
	file := d.path("alpha.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.dir, "alpha.yaml", string(text)+"allow: {prefixes: [192.168.5.0/24]}\n")
	killed := 0
	for _, pid := range testnet.Pids(d.spaces["alpha"].Name) {
		words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(words), "fieldmesh-agent\x00face\x00") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed != 1 {
		t.Fatalf("%d faces were killed", killed)
	}
	d.run(t, strings.ReplaceAll(patient, "10.77.0.", "192.168.5."), "--patience", "30s").refused(t,
		`node alpha: host: of agent.yaml the privileged half began with "allow.prefixes: [10.77.0.0/16]", what faces `+
			`the network with "allow.prefixes: [192.168.5.0/24]"; start both halves again: sudo systemctl restart `+
			"fieldmesh-host fieldmesh-face, or end fieldmesh-agent up and start it\n")
	d.noRun(t)
}

// TestE2EWithoutRoot: everything that changes a machine says who may.
func TestE2EWithoutRoot(t *testing.T) {
	testnet.Need(t)
	dir := testnet.Folder(t)
	if err := os.Chown(dir, testnet.Nobody, testnet.Nobody); err != nil {
		t.Fatal(err)
	}
	campaign := write(t, dir, "campaign.yaml", patient)
	config := write(t, dir, "agent.yaml", "node: car\ninterface: wlan0\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"fieldmesh", "rehearse", campaign, "--runs", dir}, "a rehearsal makes network namespaces and " +
			"interfaces, which needs root: run it with sudo, or as it is with --clock virtual\n"},
		{[]string{"fieldmesh-agent", "up", "--config", config}, "must run as root: it changes network settings; run " +
			"sudo fieldmesh-agent up; without root, `privileges: none` in the configuration has it take part in " +
			"trials that change nothing\n"},
		{[]string{"fieldmesh-agent", "host", "--config", config}, "must run as root: it changes network settings; " +
			"run sudo fieldmesh-agent host\n"},
		{[]string{"fieldmesh-agent", "restore", "--config", config}, "must run as root: it changes network settings; " +
			"run sudo fieldmesh-agent restore\n"},
	} {
		cmd := program(c.args[0], c.args[1:]...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testnet.Nobody, Gid: testnet.Nobody,
			Groups: []uint32{}}}
		finish(t, cmd).refused(t, c.want)
	}
}

// TestE2ERehearsalsThatCannotBegin leave neither a run nor a field behind.
func TestE2ERehearsalsThatCannotBegin(t *testing.T) {
	testnet.Need(t)
	d := &desk{dir: testnet.Folder(t)}
	campaign := write(t, d.dir, "campaign.yaml", patient)
	rehearse := func(args ...string) outcome {
		c := program("fieldmesh", append([]string{"rehearse", campaign, "--runs", d.path("runs"), "--field-dir",
			d.path("field")}, args...)...)
		c.Dir = d.dir
		return finish(t, c)
	}
	left := func(t *testing.T) {
		d.noRun(t)
		if entries, err := os.ReadDir(d.path("field")); err == nil && len(entries) > 0 {
			t.Errorf("it left %v in the fields' folder", entries)
		}
	}
	t.Run("no agent", func(t *testing.T) {
		rehearse("--agent", "/nonexistent/agent").refused(t, "find the agent's program: open /nonexistent/agent: no "+
			"such file or directory; build it with `make build`, or name it with --agent\n")
		left(t)
	})
	t.Run("a closed folder", func(t *testing.T) {
		if err := os.Mkdir(d.path("closed"), 0o700); err != nil {
			t.Fatal(err)
		}
		rehearse("--field-dir", d.path("closed", "field")).refused(t, `"`+d.path("closed")+
			`" is closed to other users, as whom the agents run; run: chmod o+x `+d.path("closed")+"\n")
		left(t)
	})
	t.Run("no fields", func(t *testing.T) {
		rehearse("--fields", "0").ended(t, 2, "--fields 0: at least one is needed\n")
		left(t)
	})
	t.Run("a program that is missing", func(t *testing.T) {
		c := program("fieldmesh", "rehearse", campaign, "--runs", d.path("runs"), "--field-dir", d.path("field"))
		c.Dir, c.Env = d.dir, []string{"PATH=/nonexistent"}
		finish(t, c).refused(t, "ip is not installed: sudo apt-get install iproute2",
			"iperf3 is not installed: sudo apt-get install iperf3")
		left(t)
	})
	t.Run("a run that is not there", func(t *testing.T) {
		c := program("fieldmesh", "rehearse", "--resume", "tuesday", "--runs", d.path("runs"))
		finish(t, c).refused(t, `read run "`+d.path("runs", "tuesday")+`": there is no run in this folder; `)
		left(t)
	})
}
