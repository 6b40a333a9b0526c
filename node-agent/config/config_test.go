package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

const whole = `# a node
node: car
listen: 192.168.8.2:7443
go_port: 7001
state_dir: /srv/fieldmesh
interface: wlan1
control_interface: usb0
discovery: false
gpsd: 127.0.0.1:4000
feedback_socket: /run/field/car.sock
face_user: "1000:1000"
keys_dir: /srv/keys
app_key: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
allow:
  prefixes: [10.78.0.0/16, "fd00:77::/48"]
quota_bytes: 5000000
quota_free_bytes: 7000000
dead_man_s: 12.5
binaries:
  iperf3: /opt/bin/iperf3
`

func TestWholeFileIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Node != "car" || c.GoPort != 7001 || c.ControlInterface != "usb0" || c.FaceUser != "1000:1000" {
		t.Errorf("read %+v", c)
	}
	if c.Discovery {
		t.Error("discovery is on, and switched off in the file")
	}
	if len(c.Allow.Prefixes) != 2 || c.Allow.Prefixes[1].String() != "fd00:77::/48" {
		t.Errorf("prefixes %v", c.Allow.Prefixes)
	}
	if c.Binary("iperf3") != "/opt/bin/iperf3" || c.Binary("babeld") != "/usr/sbin/babeld" {
		t.Errorf("binaries %v", c.Binaries)
	}
	if c.DeadMan() != 12500*time.Millisecond || c.HostSocket() != "/srv/fieldmesh/host/host.sock" || c.SpoolDir() !=
		"/srv/fieldmesh/face/spool" {
		t.Errorf("derived %s %s %s", c.DeadMan(), c.HostSocket(), c.SpoolDir())
	}
	if d := c.Daemons(); len(d) != 3 || d["babeld"] == "" || d["olsrd"] == "" || d["wpa_supplicant"] == "" {
		t.Errorf("the privileged half may start %v, want the routing daemons and wpa_supplicant alone", d)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Parse("agent.yaml", []byte("node: roadside\ninterface: wlan0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Discovery || c.GPSD != "127.0.0.1:2947" || c.DeadManS != 1800 || c.FaceUser != "fieldmesh" {
		t.Errorf("defaults %+v", c)
	}
	if len(c.Allow.Prefixes) != 1 || c.Allow.Prefixes[0].String() != "10.77.0.0/16" {
		t.Errorf("prefixes %v", c.Allow.Prefixes)
	}
}

// The control link may be the very network that the machine keeps.
func TestAnInterfaceBesideTheMachinesOwn(t *testing.T) {
	c, err := Parse("agent.yaml", []byte("node: car\ninterface: mesh0\nphy_of: wlan0\ncontrol_interface: wlan0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.PhyOf != "wlan0" || !slices.Equal(c.HostInterfaces(), []string{"mesh0"}) {
		t.Errorf("beside %q, the privileged half may change %v", c.PhyOf, c.HostInterfaces())
	}
}

// faults are files that are refused, with words of the refusal.
func faults() map[string]struct{ file, want string } {
	const base = "node: car\ninterface: wlan0\n"
	return map[string]struct{ file, want string }{
		"empty": {"", "a.yaml: node: missing"},
		"two feedbacks": {"node: n\ninterface: wlan0\nfeedback_socket: /run/x\nradio_feedback: true\n",
			"a.yaml:4:17: radio_feedback: feedback_socket is given too; leave one of the two out"},
		"privileges": {base + "privileges: some\n", `a.yaml:3:13: privileges: "some" is neither root nor none`},
		"phy without root": {"node: n\ninterface: mesh0\nphy_of: wlan0\nprivileges: none\n",
			"a.yaml:3:9: phy_of: needs root, and `privileges` is none"},
		"feedback without root": {base + "radio_feedback: true\nprivileges: none\n",
			"a.yaml:3:17: radio_feedback: needs root, and `privileges` is none"},
		"not yaml": {"node: [", "a.yaml:1:"},
		"unknown key": {base + "inteface: x\n",
			`a.yaml:3:1: unknown key "inteface"; did you mean "interface"?`},
		"unknown nested key": {base + "allow:\n  prefix: []\n",
			`a.yaml:4:3: unknown key "prefix"; did you mean "prefixes"?`},
		"twice": {base + "node: b\n", `a.yaml:3:1: not valid YAML: key "node" is given twice, first in line 1`},
		"type": {base + "go_port: x\n",
			`a.yaml:3:10: go_port: "x": expected a whole number, without a unit and without quotes`},
		"a size with its unit": {base + "quota_bytes: 5GB\n",
			`a.yaml:3:14: quota_bytes: "5GB": expected a whole number of bytes, without the unit and without quotes`},
		"a time with its unit": {base + "dead_man_s: 30min\n",
			`a.yaml:3:13: dead_man_s: "30min": expected a number of seconds, without the unit and without quotes`},
		"a truth value": {base + "radio_feedback: maybe\n",
			`a.yaml:3:17: radio_feedback: "maybe": expected true or false`},
		"no list": {base + "allow: {prefixes: 192.168.5.0/24}\n",
			"a.yaml:3:19: a text stands where a list is expected, such as [a, b]"},
		"no space": {"node:car\ninterface: wlan0\n",
			"a.yaml:1:1: not valid YAML: no key; a key has a colon and a space behind it, such as `key: value`"},
		"tab": {"\tnode: car\n", "not valid YAML: a tab begins the line; indent it by spaces"},
		"the receiver's device": {base + "gpsd: /dev/ttyACM0\n", `a.yaml:3:7: gpsd: "/dev/ttyACM0" is not where gpsd ` +
			"answers, such as 127.0.0.1:2947, nor none; a receiver's device is for gpsd itself"},
		"no port": {base + "listen: 7443\n",
			`a.yaml:3:9: listen: "7443" is not HOST:PORT or :PORT with a port of 1 to 65535, such as :7443`},
		"home": {base + "keys_dir: ~/keys\n", `a.yaml:3:11: keys_dir: "~/keys" is not an absolute path; write it in ` +
			"full, such as /var/lib/fieldmesh, without ~, . and .."},
		"port": {base + "go_port: 70000\n", "a.yaml:3:10: go_port: 70000 is not allowed; allowed: 1 " +
			"to 65535"},
		"node":                {"node: Car\ninterface: wlan0\n", `a.yaml:1:7: node: "Car"`},
		"interface traversal": {"node: car\ninterface: ../x\n", `a.yaml:2:12: interface: "../x"`},
		"interface all":       {"node: car\ninterface: all\n", `a.yaml:2:12: interface: "all"`},
		"control is tested":   {base + "control_interface: wlan0\n", "a.yaml:3:20: control_interface"},
		"a former name":       {base + "beside: wlan0\n", `a.yaml:3:1: key "beside" is called "phy_of" now`},
		"its own phy": {base + "phy_of: wlan0\n",
			`a.yaml:3:9: phy_of: "wlan0" is the interface under test; give ` + "`interface` a new name"},
		"phy traversal": {base + "phy_of: ../x\n", `a.yaml:3:9: phy_of: "../x" is not the name`},
		"phy of an emulated radio": {base + "phy_of: wlan1\nfeedback_socket: /run/x\n",
			"a.yaml:3:9: phy_of: feedback_socket is given too"},
		"root face":  {base + "face_user: root\n", "a.yaml:3:12: face_user"},
		"uid 0 face": {base + "face_user: \"0:0\"\n", "a.yaml:3:12: face_user"},
		"prefix": {base + "allow: {prefixes: [10.77.0.0/16, nonsense]}\n",
			`"nonsense" is not a prefix`},
		"prefix bits": {base + "allow: {prefixes: [10.77.0.1/16]}\n", "write 10.77.0.0/16"},
		"prefix wide": {base + "allow: {prefixes: [0.0.0.0/0]}\n",
			"a.yaml:3:20: allow.prefixes[0]: 0.0.0.0/0 is wider"},
		"relative": {base + "state_dir: lib\n", "a.yaml:3:12: state_dir"},
		"no room for a daemon's socket": {base + "state_dir: /" + strings.Repeat("x", 84) + "\n",
			"a.yaml:3:12: state_dir: "},
		"traversal":    {base + "keys_dir: /etc/../root\n", "a.yaml:3:11: keys_dir"},
		"tool":         {base + "binaries:\n  bash: /bin/bash\n", "a.yaml:4:9: binaries.bash: not a tool"},
		"dead man":     {base + "dead_man_s: 0\n", "a.yaml:3:13: dead_man_s: 0 is not allowed; allowed: 10 to 86400"},
		"dead man nan": {base + "dead_man_s: .nan\n", "a.yaml:3:13: dead_man_s"},
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for name, c := range faults() {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("a.yaml", []byte(c.file))
			var located *Error
			if !errors.As(err, &located) {
				t.Fatalf("error %v, want *Error", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want %q in it", err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("node: car\ninterface: wlan0\n"))
	f.Add([]byte("&a [*a]"))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		c, err := Parse("fuzz", data)
		if err == nil && (c.Node == "" || c.Interface == "" || len(c.Allow.Prefixes) == 0) {
			t.Errorf("accepted without its needs: %+v", c)
		}
	})
}

// bomb is YAML of a few lines whose last anchor stands for 10^9 texts.
func bomb() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		tenfold := strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10)
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(tenfold, ","))
	}
	return text
}

//attack:file an agent.yaml whose aliases unfold to thousands of millions of values, or lie in themselves | anchors
//attack:and and aliases are not part of the format
func TestAliasesDoNotUnfold(t *testing.T) {
	const base = "node: car\ninterface: wlan0\n"
	for name, text := range map[string]string{
		"keys of its own":     bomb() + base,
		"in a list":           bomb() + base + "allow: {prefixes: *a8}\n",
		"within what is ours": base + "allow: {prefixes: &p [*p]}\n",
		"deep":                base + "allow: {prefixes: " + strings.Repeat("[", 10_000) + "}\n",
	} {
		if _, err := Parse("a.yaml", []byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestTheStateFolderOfAFileWithAFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	for text, want := range map[string]string{
		"node: car\n":                                "/var/lib/fieldmesh",
		"nod: car\nstate_dir: /srv/a\n":              "/srv/a",
		"\tnode: [\nstate_dir : \"/srv/a\" # here\n": "/srv/a",
		"state_dir: /srv/a\nstate_dir: /srv/b\n":     "",
		"state_dir: srv\n":                           "",
		"state_dir:\n  /srv/a\n":                     "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := StateDirOf(path); got != want {
			t.Errorf("of %q it is %q, want %q", text, got, want)
		}
	}
	if got := StateDirOf(path + ".none"); got != "" {
		t.Errorf("of no file it is %q", got)
	}
}
