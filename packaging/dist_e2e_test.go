//go:build e2e

package packaging

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// dist is what TestMain's build made: the folder, and the source's copy above it.
var dist string

const (
	commit = "0123456789ab"
	date   = "2026-02-03T04:05:06+00:00"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	code, err := withDist(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withDist(m *testing.M) (int, error) {
	dir, err := testnet.OpenFolder()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := build(filepath.Join(dir, "one"), "amd64 arm64"); err != nil {
		return 0, err
	}
	dist = filepath.Join(dir, "one", "dist")
	return m.Run(), nil
}

// build copies the source and makes the packages of it for some of Debian's
// architectures.
func build(to, arches string, env ...string) error {
	return inCopy(to, []string{"make", "packages", "ARCHES=" + arches, "VERSION=0.1.0", "COMMIT=" + commit,
		"DATE=" + date}, env...)
}

// inCopy copies the source, and runs a command in the copy.
func inCopy(to string, command []string, env ...string) error {
	script := `set -e; mkdir -p "$1"; git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
		while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
		tar --null -T - -cf - | tar -C "$1" -xf -; cd "$1"; shift; exec "$@"`
	cmd := exec.Command("bash", append([]string{"-c", script, "build", to}, command...)...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %q: %w\n%s", command, err, out)
	}
	return nil
}

func needDist(t *testing.T) {
	t.Helper()
	testnet.Need(t, "dpkg-deb", "make", "git")
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Another folder, another umask, another time zone, another locale: the same bytes.
func TestE2ETwoBuildsAreTheSameBytes(t *testing.T) {
	needDist(t)
	second := filepath.Join(testnet.Folder(t), "a folder", "further down")
	old := umask(0o077)
	err := build(second, "amd64 arm64", "TZ=Asia/Tokyo", "LC_ALL=C", "HOME="+t.TempDir(),
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	umask(old)
	if err != nil {
		t.Fatal(err)
	}
	sums := func(dir string) string {
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	one, two := sums(dist), sums(filepath.Join(second, "dist"))
	if one != two {
		t.Errorf("two builds differ:\n%s\n%s", one, two)
	}
	if n := strings.Count(one, "\n"); n != 12 {
		t.Errorf("%d files are summed:\n%s", n, one)
	}
	t.Logf("the same bytes twice:\n%s", one)
	check := exec.Command("sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = dist
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("SHA256SUMS: %v\n%s", err, out)
	}
}

// The app without a signature depends on nothing but its source: another folder, another
// umask, another time zone, another debug key. It is handed out with its sum, and with the
// notices of what is in it.
func TestE2ETwoBuildsOfTheAppAreTheSameBytes(t *testing.T) {
	needDist(t)
	testnet.Need(t, "mvn", "jar", "zip", "aapt2", "zipalign", "apksigner", "dexdump")
	artifacts, err := filepath.Abs("../android-app/.repository")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(artifacts); err != nil {
		t.Skipf("needs the artifacts that the app is made of: run `make app` (%v)", err)
	}
	const apk = "android-app/ui/target/fieldmesh-unsigned.apk"
	iperf3, err := filepath.Abs(testnet.Iperf3(t, "iperf3/build", "aarch64"))
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Dir(filepath.Dir(filepath.Dir(iperf3))) // where iperf3/build looks for the one of its sources
	made := func(to string, env ...string) []byte {
		t.Helper()
		script := `ln -s "$1" android-app/.repository &&
			make phone VERSION=0.1.0 COMMIT=` + commit + ` DATE=` + date + ` &&
			FIELDMESH_PHONE=$PWD/bin/phone exec android-app/maven -DskipTests package`
		env = append(env, "FIELDMESH_IPERF3="+built, "GOCACHE="+goEnv(t, "GOCACHE"),
			"GOMODCACHE="+goEnv(t, "GOMODCACHE"))
		if err := inCopy(to, []string{"bash", "-c", script, "app", artifacts}, env...); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(to, apk))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	one := filepath.Join(testnet.Folder(t), "one")
	first := made(one)
	old := umask(0o077)
	second := made(filepath.Join(testnet.Folder(t), "a folder", "further down"), "TZ=Asia/Tokyo", "LC_ALL=C",
		"HOME="+t.TempDir())
	umask(old)
	if !bytes.Equal(first, second) {
		t.Errorf("two builds differ: %x, %x", sha256.Sum256(first), sha256.Sum256(second))
	}

	if err := build(one, "amd64", "APP="+apk, "PROGRAMS=bin/phone"); err != nil {
		t.Fatal(err)
	}
	const name = "fieldmesh-app_0.1.0-unsigned.apk"
	sums, err := os.ReadFile(filepath.Join(one, "dist", "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(first), name); !strings.Contains(string(sums), want) {
		t.Errorf("there is no %q in\n%s", want, sums)
	}
	handed := filepath.Join(one, "dist", name)
	for _, want := range []string{"package: name='dev.fieldmesh.app'", "sdkVersion:'29'", "native-code: 'arm64-v8a'"} {
		if out := run(t, "aapt2", "dump", "badging", handed); !strings.Contains(out, want) {
			t.Errorf("%s has no %s:\n%s", name, want, out)
		}
	}
	inside, err := zip.OpenReader(handed)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	for _, want := range []string{"lib/arm64-v8a/libfieldmesh_agent.so", "lib/arm64-v8a/libiperf3.so",
		"assets/notices.txt"} {
		if _, err := fs.Stat(inside, want); err != nil {
			t.Error(err)
		}
	}
	notices, err := os.ReadFile(filepath.Join(one, "dist", "fieldmesh-app_0.1.0-notices.txt"))
	if err != nil {
		t.Fatal(err)
	}
	bill, err := os.ReadFile(filepath.Join(one, "dist", "fieldmesh_0.1.0.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The Regents of the University of California", "Rich Felker", "The Go Authors",
		"github.com/spf13/cobra"} {
		if !strings.Contains(string(notices), want) {
			t.Errorf("the notices have no %q", want)
		}
	}
	for _, want := range []string{"libfieldmesh_agent.so", "pkg:generic/iperf3@", "pkg:generic/cJSON@",
		"pkg:generic/musl@"} {
		if !strings.Contains(string(bill), want) {
			t.Errorf("%s is not listed", want)
		}
	}
	if out, err := exec.Command("apksigner", "verify", handed).CombinedOutput(); err == nil {
		t.Errorf("%s is signed:\n%s", name, out)
	}
}

// What the programs are made of is handed out beside them.
func TestE2EWhatIsInTheProgramsIsListed(t *testing.T) {
	needDist(t)
	text, err := os.ReadFile(filepath.Join(dist, "fieldmesh_0.1.0.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob(filepath.Join(dist, "fieldmesh*64"))
	if err != nil || len(programs) != 5 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	for _, p := range programs {
		if !strings.Contains(string(text), `"name": "`+filepath.Base(p)+`"`) {
			t.Errorf("%s is not listed", filepath.Base(p))
		}
		for _, l := range strings.Split(run(t, "go", "version", "-m", p), "\n") {
			if f := strings.Fields(l); len(f) >= 3 && f[0] == "dep" &&
				!strings.Contains(string(text), `"purl": "pkg:golang/`+f[1]+"@"+f[2]+`"`) {
				t.Errorf("%s %s of %s is not listed", f[1], f[2], filepath.Base(p))
			}
		}
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(run(t, "go", "env", name))
}

// Installed, looked at, removed and purged on a throwaway overlay of this very
// system: nothing of it reaches the system itself.
func TestE2EDebianPackageIsInstalledAndRemoved(t *testing.T) {
	needDist(t)
	testnet.Need(t, "unshare", "dpkg")
	script := `set -e
d=$1; dist=$2
mount -t tmpfs tmpfs "$d"; mkdir "$d/up" "$d/work" "$d/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$d/up,workdir=$d/work" "$d/root"
mount -t tmpfs tmpfs "$d/root/run"
mount -t proc proc "$d/root/proc"; mount --rbind /dev "$d/root/dev"
mkdir "$d/root/run/dist"; mount --bind "$dist" "$d/root/run/dist"
inside() { chroot "$d/root" "$@"; }
inside dpkg --install /run/dist/fieldmesh_0.1.0_amd64.deb /run/dist/fieldmesh-agent_0.1.0_amd64.deb
echo "user: $(inside getent passwd fieldmesh)"
echo "keys: $(inside stat -c '%a %U %G' /etc/fieldmesh/keys)"
echo "version: $(inside fieldmesh --version)"
echo "agent: $(inside fieldmesh-agent --version)"
echo "verify: $(inside dpkg --verify fieldmesh fieldmesh-agent && echo whole)"
echo "example: $(inside fieldmesh plan check /usr/share/doc/fieldmesh/campaigns/velocity.yaml)"
echo "manual: $(inside zcat /usr/share/man/man1/fieldmesh-rehearse.1.gz | grep -c 'fieldmesh rehearse FILE')"
echo "completes: $(inside bash -c '. /usr/share/bash-completion/completions/fieldmesh; complete -p fieldmesh')"
echo "desk check: $(inside fieldmesh plan check /usr/share/doc/fieldmesh/campaigns/stationary-check.yaml)"
inside fieldmesh-agent probe >/dev/null && echo "probe: runs"
if command -v systemd-analyze >/dev/null; then
	inside systemd-analyze verify --man=no /lib/systemd/system/fieldmesh-host.service /lib/systemd/system/fieldmesh-face.service 2>&1 && echo "units: verified"
	inside systemd-analyze security --no-pager --offline=yes --threshold=15 fieldmesh-face.service | tail -1
	inside systemd-analyze security --no-pager --offline=yes --threshold=60 fieldmesh-host.service | tail -1
	inside systemctl enable fieldmesh-face.service 2>&1
fi
alone() { unshare --net chroot "$d/root" "$@"; } # what puts back does not meet this machine's network
mkdir -p "$d/root/var/lib/fieldmesh/host"
# The second line is sound: it has the CRC-32C of its text.
printf 'damaged\n297bd0aa {}\n' >"$d/root/var/lib/fieldmesh/host/journal"
alone dpkg --remove fieldmesh-agent 2>&1 || echo "not put back: $(inside dpkg-query -W -f '${Status}' fieldmesh-agent)"
alone dpkg --remove fieldmesh-agent 2>&1 || echo "not put back again: $(inside dpkg-query -W -f '${Status}' fieldmesh-agent)"
mv "$d/root/var/lib/fieldmesh/host" "$d/root/srv/host"
echo 'state_dir: "/srv" # a bigger disk' >>"$d/root/etc/fieldmesh/agent.yaml"
alone dpkg --remove fieldmesh-agent 2>&1 || echo "not put back elsewhere: $(inside dpkg-query -W -f '${Status}' fieldmesh-agent)"
mkdir "$d/root/var/lib/fieldmesh/host"; mv "$d/root/srv/host/"journal.damaged-* "$d/root/var/lib/fieldmesh/host"; rm -r "$d/root/srv/host"
mkdir -p "$d/root/var/lib/fieldmesh/face"; echo '[]' | tee "$d/root/var/lib/fieldmesh/face/"apps.json "$d/root/var/lib/fieldmesh/face/apps-by.json"; : >"$d/root/var/lib/fieldmesh/face/records"
inside dpkg --remove fieldmesh fieldmesh-agent
echo "kept: $(inside ls /etc/fieldmesh)"
inside dpkg --purge fieldmesh-agent
# Rehearsals that run on this machine meanwhile have their folder there too.
left() {
	inside find /etc/fieldmesh /var/lib/fieldmesh /usr/bin/fieldmesh-agent -path /var/lib/fieldmesh/rehearsal -prune \
		-o -type f -print 2>/dev/null
}
echo "left: $(left | sort | xargs)"
`
	out := run(t, "unshare", "--mount", "--propagation", "private", "bash", "-c", script, "install", t.TempDir(), dist)
	t.Log(out)
	for _, want := range []string{
		`user: fieldmesh:x:\d+:\d+:.*:/usr/sbin/nologin\n`, `keys: 750 root fieldmesh\n`,
		`version: fieldmesh version 0\.1\.0 \(commit ` + commit + ` of ` + regexp.QuoteMeta(date) +
			`, go\S+, linux/amd64\)\n`,
		`agent: fieldmesh-agent version 0\.1\.0 \(commit ` + commit, `verify: whole\n`, `probe: runs\n`,
		`desk check: .*fine: campaign stationary-check`,
		`manual: [1-9]`, `completes: complete .*fieldmesh\n`,
		`units: verified\n`, `Overall exposure level for fieldmesh-face\.service: (0\.\d|1\.[0-5])`,
		`Overall exposure level for fieldmesh-host\.service: [0-5]\.\d`,
		`kept: agent\.yaml\s+keys\n`,
		`undo by hand what that line`, `delete /var/lib/fieldmesh/host first`, `not put back: .* installed\n`,
		`not put back again: .* installed\n`, `delete /srv/host first`, `not put back elsewhere: .* installed\n`,
		`left: /var/lib/fieldmesh/face/records /var/lib/fieldmesh/host/journal\.damaged-\w+\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("there is no %q", want)
		}
	}
}

// What the guides name is beside them: every campaign, and each page, figure and
// notebook of the guides that a link leads to.
func TestE2EGuidesOfThePackageAreWhole(t *testing.T) {
	needDist(t)
	root := testnet.Folder(t)
	run(t, "dpkg-deb", "--raw-extract", filepath.Join(dist, "fieldmesh_0.1.0_amd64.deb"), root)
	doc := filepath.Join(root, "usr/share/doc/fieldmesh")
	campaigns, err := filepath.Glob("../campaigns/*.yaml")
	if err != nil || len(campaigns) < 10 {
		t.Fatalf("%d campaigns, %v", len(campaigns), err)
	}
	for _, c := range campaigns {
		if _, err := os.Stat(filepath.Join(doc, "campaigns", filepath.Base(c))); err != nil {
			t.Error(err)
		}
	}
	link, links := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)\s]*)?\)`), 0
	for page := range strings.Lines(run(t, "find", filepath.Join(doc, "field-guides"), "-name", "*.md")) {
		page = strings.TrimSpace(page)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := filepath.Join(filepath.Dir(page), m[1])
			if !strings.HasPrefix(to, filepath.Join(doc, "field-guides")) {
				continue // into the source
			}
			links++
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links: the guides were not read", links)
	}
}

// unit reads a setting of a unit; it may be there more than once.
func unit(t *testing.T, name, key string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("debian", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+"="); ok {
			out = append(out, strings.Fields(value)...)
		}
	}
	return out
}

func TestE2ETermuxPackageIsWhole(t *testing.T) {
	needDist(t)
	root := testnet.Folder(t)
	deb := filepath.Join(dist, "fieldmesh-termux_0.1.0_aarch64.deb")
	run(t, "dpkg-deb", "--raw-extract", deb, root)
	if control := run(t, "dpkg-deb", "--field", deb, "Architecture", "Depends"); !strings.Contains(control,
		"aarch64") || !strings.Contains(control, "termux-services") {
		t.Errorf("control says %s", control)
	}
	const prefix = "data/data/com.termux/files/usr/"
	for _, script := range []string{prefix + "bin/fieldmesh-root", prefix + "var/service/fieldmesh/run",
		prefix + "var/service/fieldmesh/finish", prefix + "share/fieldmesh/boot", "DEBIAN/preinst", "DEBIAN/postinst",
		"DEBIAN/prerm"} {
		path := filepath.Join(root, script)
		run(t, "sh", "-n", path)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", script, info, err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(text, []byte("#!/data/data/com.termux/files/usr/bin/sh\n")) {
			t.Errorf("%s does not name Termux's shell: %v", script, err)
		}
	}
	// The controller runs with the app's rights, below the filter that Go's port to Android knows.
	if built := run(t, "go", "version", "-m", filepath.Join(root, prefix, "bin/fieldmesh")); !strings.Contains(built,
		"GOOS=android") {
		t.Errorf("the controller is not for Android:\n%s", built)
	}
	// Nothing outside Termux's prefix.
	for path := range strings.Lines(run(t, "find", root, "-type", "f")) {
		rel, err := filepath.Rel(root, strings.TrimSpace(path))
		if err != nil || !strings.HasPrefix(rel, prefix) && !strings.HasPrefix(rel, "DEBIAN/") {
			t.Errorf("%s lies outside Termux's prefix: %v", rel, err)
		}
	}
}

// A service that was enabled is still so after an upgrade; one that was installed only is not enabled yet, also by a
// package of before, which had the file `down` in it. As for Debian's package, on a throwaway overlay of this system.
func TestE2ETermuxServiceStaysEnabled(t *testing.T) {
	needDist(t)
	testnet.Need(t, "unshare", "dpkg")
	script := `set -e
d=$1; dist=$2; prefix=/data/data/com.termux/files/usr
mount -t tmpfs tmpfs "$d"; mkdir "$d/up" "$d/work" "$d/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$d/up,workdir=$d/work" "$d/root"
mount -t tmpfs tmpfs "$d/root/run"; mount -t proc proc "$d/root/proc"; mount --rbind /dev "$d/root/dev"
mkdir "$d/root/run/dist"; mount --bind "$dist" "$d/root/run/dist"
mkdir -p "$d/root$prefix/bin"; ln -s /bin/sh "$d/root$prefix/bin/sh"
install() { chroot "$d/root" dpkg --force-architecture --force-depends --install "${1:-/run/dist/fieldmesh-termux_0.1.0_aarch64.deb}"; }
is() { [ -x "$d/root$prefix/var/service/fieldmesh/run" ]; [ -e "$d/root$prefix/var/service/fieldmesh/down" ] && echo "$1: down" || echo "$1: enabled"; }
install; is first
install; is second
rm "$d/root$prefix/var/service/fieldmesh/down"; install; is third
dpkg-deb --raw-extract "$dist/fieldmesh-termux_0.1.0_aarch64.deb" "$d/root/run/before"
: >"$d/root/run/before$prefix/var/service/fieldmesh/down"; rm "$d/root/run/before/DEBIAN/"*inst
sed -i 's/^Version: .*/Version: 0.0.9/' "$d/root/run/before/DEBIAN/control"
chroot "$d/root" dpkg-deb --build /run/before /run/before.deb
before() { chroot "$d/root" dpkg --purge fieldmesh; rm -rf "$d/root$prefix/var/service/fieldmesh"; install /run/before.deb; }
before; install; is fourth
before; rm "$d/root$prefix/var/service/fieldmesh/down"; install; is fifth
`
	out := run(t, "unshare", "--mount", "--propagation", "private", "bash", "-c", script, "install", t.TempDir(), dist)
	t.Log(out)
	for _, want := range []string{"first: down\n", "second: down\n", "third: enabled\n", "fourth: down\n",
		"fifth: enabled\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
}

// What `fieldmesh-root` hands to root holds nothing of the user's environment,
// and no word of the user's.
//
//attack:local a phone's app user who puts a program in root's way | root runs nothing from Termux's folders
func TestE2ERootOfThePhoneRunsNothingOfTheUsers(t *testing.T) {
	needDist(t)
	script, err := os.ReadFile("termux/fieldmesh-root")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The same script with a su and an env that say what they are given.
	said := filepath.Join(dir, "said")
	fake := "#!/bin/sh\nprintf '%s\\n' \"$*\" >>" + said + "\n"
	for _, name := range []string{"su", "env"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fake), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ReplaceAll(string(script), "/system/bin/env", filepath.Join(dir, "env"))
	path := filepath.Join(dir, "fieldmesh-root")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"pair; reboot"}, {"pair", "$(reboot)"}, {"pair", "--bundle", "/sdcard/alpha"}} {
		if out, err := exec.Command("sh", append([]string{path}, words...)...).CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "pair --bundle DIR --config") {
			t.Errorf("%v, which it does not know, is not refused: %v\n%s", words, err, out)
		}
	}
	if given, err := os.ReadFile(said); err == nil {
		t.Fatalf("root was given %s", given)
	}
	run(t, "sh", path, "pair")
	run(t, "sh", path, "up")
	given, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	want := "-i PATH=/system/bin:/system/xbin:/sbin:/debug_ramdisk su -c /data/local/fieldmesh/fieldmesh-agent pair " +
		"--config /data/local/fieldmesh/agent.yaml\n" +
		"-i PATH=/system/bin:/system/xbin:/sbin:/debug_ramdisk su -c exec /data/local/fieldmesh/fieldmesh-agent up " +
		"--until-eof --config /data/local/fieldmesh/agent.yaml\n"
	if string(given) != want {
		t.Errorf("root is given\n%swant\n%s", given, want)
	}
}

// Who installs the packages builds no kernel: a machine's users rehearse in virtual
// time with that of the package, whose source is handed out beside it.
func TestE2EKernelPackageRehearses(t *testing.T) {
	needDist(t)
	testnet.Need(t, "unshare", "dpkg", "iperf3", "gpsd")
	k, err := kernel.Find()
	if err != nil {
		t.Skipf("%v (%s)", err, kernel.Build)
	}
	dir := testnet.Folder(t)
	if err := build(dir, "amd64", "KERNEL="+k.Path); err != nil {
		t.Fatal(err)
	}
	packages := filepath.Join(dir, "dist")
	script := `set -e
d=$1; dist=$2
mount -t tmpfs tmpfs "$d"; mkdir "$d/up" "$d/work" "$d/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$d/up,workdir=$d/work" "$d/root"
mount -t tmpfs tmpfs "$d/root/run"; mount -t tmpfs tmpfs "$d/root/tmp"
mount -t proc proc "$d/root/proc"; mount --rbind /dev "$d/root/dev"; mount -t tmpfs tmpfs "$d/root/dev/shm"
mkdir "$d/root/run/dist"; mount --bind "$dist" "$d/root/run/dist"
inside() { chroot "$d/root" "$@"; }
inside dpkg --install /run/dist/fieldmesh_0.1.0_amd64.deb /run/dist/fieldmesh-agent_0.1.0_amd64.deb \
	/run/dist/fieldmesh-kernel_0.1.0_amd64.deb >/dev/null
inside dpkg --verify fieldmesh-kernel && echo "package: whole"
(cd "$dist" && sha256sum --check --quiet SHA256SUMS && echo "sums: right")
mkdir -m 777 "$d/root/run/home"
sed -e 's/levels: \[2.8, .*\]/levels: [16.7]/' -e 's/repetitions: 2/repetitions: 1/' \
	"$d/root/usr/share/doc/fieldmesh/campaigns/velocity.yaml" >"$d/root/run/home/velocity.yaml"
chroot --userspec=65534:65534 "$d/root" env -i HOME=/run/home PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c 'cd /run/home &&
	fieldmesh rehearse velocity.yaml --clock virtual --runs runs' 2>&1
`
	out := run(t, "unshare", "--mount", "--propagation", "private", "bash", "-c", script, "install", t.TempDir(),
		packages)
	t.Log(out)
	for _, want := range []string{`package: whole`, `sums: right`, "2 of 2 trials accepted"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
	source, err := filepath.Glob(filepath.Join(packages, "linux-source-*.deb"))
	if err != nil || len(source) != 1 {
		t.Errorf("the kernel's source is not handed out: %v, %v", source, err)
	}
}
