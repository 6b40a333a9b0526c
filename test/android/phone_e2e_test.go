//go:build e2e

package android

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	termux = "/data/data/com.termux/files/usr" // Termux's prefix
	home   = "/data/local/fieldmesh"           // root's own folder
	user   = 10123                             // Termux's: apps' users begin at 10000
	inet   = 3003                              // AID_INET of Android's android_filesystem_config.h
)

// root makes a phone's file system of what a phone has, and stays for others to
// enter. The programs are those of this machine, under the names at which a phone
// has them; there is no /tmp and no /etc.
const root = `set -e
cd "$1"; self=$2; programs=$3; prefix=.$4
mount -t tmpfs -o mode=755 tmpfs .; cd "$1"
mkdir -p air proc sys dev usr run debug_ramdisk data/local system/bin $prefix/bin
mount --bind "$5" air
mount -t proc proc proc; mount -t sysfs sysfs sys; mount -t tmpfs tmpfs sys/power; mount --rbind /dev dev; mount --bind /usr usr
touch sys/power/wake_lock sys/power/wake_unlock
ln -s usr/lib usr/lib64 .
for f in sh env sha256sum cut sed mkdir chown chmod cp mv rm cat mkfifo sleep stat ip; do ln -s "$(readlink -f "$(command -v $f)")" system/bin/$f; done
ln -s "$(readlink -f "$(command -v iptables-legacy)")" system/bin/iptables
for f in sh id sha256sum cut rm mkfifo sleep sv runsv iperf3; do ln -s "$(readlink -f "$(command -v $f)")" $prefix/bin/$f; done
for f in su magiskd ksud; do cp "$self" debug_ramdisk/$f; done
cp "$self" system/bin/cmd; ln system/bin/cmd system/bin/dumpsys; ln system/bin/cmd system/bin/getprop
cp "$programs/fieldmesh" "$programs/fieldmesh-agent" $prefix/bin/
exec chroot . /usr/bin/sleep infinity
`

// firewall is netd's of what is forwarded, while nothing is tethered by Wi-Fi
// (TetherController.cpp of system/netd).
var firewall = []string{"-P FORWARD DROP", "-N tetherctrl_FORWARD", "-A FORWARD -j tetherctrl_FORWARD",
	"-A tetherctrl_FORWARD -j DROP"}

// phone is a rooted phone with Termux.
type phone struct {
	ns    *testnet.NS
	files *testnet.Running // keeps the phone's file system
}

// newPhone makes a phone of a namespace, with the package's files in place.
func newPhone(t *testing.T, ns *testnet.NS, su manner) phone {
	t.Helper()
	return newPhoneOnAir(t, ns, su, testnet.Folder(t))
}

// newPhoneOnAir makes one that hears others of the same air, a folder.
func newPhoneOnAir(t *testing.T, ns *testnet.NS, su manner, air string) phone {
	t.Helper()
	testnet.Need(t, "unshare", "nsenter", "setpriv", "runsv", "iperf3", "iptables-legacy")
	haveMobileData(t, ns, tethered)
	newestNetd.obey(t, ns, tethered)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := phone{ns: ns, files: testnet.Start(t, ns.Command(t.Context(), "unshare", "--mount", "--propagation", "private",
		"sh", "-c", root, "root", testnet.Folder(t), self, programs, termux, air))}
	testnet.Await(t, 30*time.Second, "the phone's file system", func() bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.files.Cmd.Process.Pid))
		return strings.HasPrefix(string(line), "/usr/bin/sleep\x00") || p.files.Over()
	})
	p.setWiFi(t, androidWiFi{API: firstAPI, Enabled: true})
	for _, line := range firewall {
		p.must(t, nil, append([]string{"/system/bin/iptables"}, strings.Fields(line)...)...)
	}
	for _, name := range []string{"termux-wake-lock", "termux-wake-unlock"} {
		p.write(t, termux+"/bin/"+name, "#!"+termux+"/bin/sh\n", 0o755)
	}
	p.unpack(t)
	p.mustRoot(t, "chown", "-R", fmt.Sprintf("%d:%d", user, user), "/data/data")
	if su == kernelSU {
		p.mustRoot(t, "chmod", "4755", "/debug_ramdisk/su")
		return p
	}
	daemon := testnet.Start(t, p.command(nil, "/debug_ramdisk/magiskd"))
	testnet.Await(t, 30*time.Second, "Magisk's daemon", func() bool {
		_, err := os.Stat(p.path(suSocket))
		return err == nil || daemon.Over()
	})
	return p
}

// put is a line by which packaging/build lays out the package for Termux.
var put = regexp.MustCompile(`put (\d+) \$here/termux/(\S+) "\$root" \$prefix(\S+)`)

// unpack puts the package's scripts where it has them, and has it do what comes before a first installation.
func (p phone) unpack(t *testing.T) {
	t.Helper()
	packaging := filepath.Join("..", "..", "packaging")
	build, err := os.ReadFile(filepath.Join(packaging, "build"))
	if err != nil {
		t.Fatal(err)
	}
	lines := put.FindAllStringSubmatch(string(build), -1)
	if len(lines) == 0 {
		t.Fatal("packaging/build lays out no package for Termux")
	}
	for _, line := range lines {
		var mode os.FileMode
		text, err := os.ReadFile(filepath.Join(packaging, "termux", line[2]))
		if err == nil {
			_, err = fmt.Sscanf(line[1], "%o", &mode)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.write(t, termux+line[3], string(text), mode)
	}
	preinst, err := os.ReadFile(filepath.Join(packaging, "termux", "fieldmesh.preinst"))
	if err != nil {
		t.Fatal(err)
	}
	p.must(t, nil, "/system/bin/sh", "-c", string(preinst), "preinst", "install")
}

// path is where a file of the phone's is seen from here.
func (p phone) path(name string) string {
	return fmt.Sprintf("/proc/%d/root%s", p.files.Cmd.Process.Pid, name)
}

func (p phone) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// command is a program on the phone, as root unless it is run by way of others.
func (p phone) command(by []string, words ...string) *exec.Cmd {
	enter := []string{"--target", fmt.Sprint(p.files.Cmd.Process.Pid), "--mount", "--net", "--root", "--wd", "--",
		"/usr/bin/env", "-i", "PATH=" + termux + "/bin:/system/bin"}
	return exec.Command("nsenter", slices.Concat(enter, by, words)...)
}

// termuxs runs a program as Termux's user.
var termuxs = []string{"/usr/bin/setpriv", fmt.Sprintf("--reuid=%d", user), fmt.Sprintf("--regid=%d", user),
	fmt.Sprintf("--groups=%d,%d", user, inet)}

func (p phone) must(t *testing.T, by []string, words ...string) string {
	t.Helper()
	out, err := p.command(by, words...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
	return string(out)
}

func (p phone) mustRoot(t *testing.T, words ...string) string {
	t.Helper()
	return p.must(t, nil, slices.Concat([]string{"/usr/bin/" + words[0]}, words[1:])...)
}
