package supervise

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The test binary plays the children: the first argument after "child" is the
// role, the second the file that it notes its steps in.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func note(file, format string, args ...any) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, format+"\n", args...); err != nil {
		panic(err)
	}
}

func child(role, file string) int {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	switch role {
	case "crash":
		note(file, "crash begins")
		return 3
	case "deaf":
		note(file, "deaf begins")
		for {
			<-terms
			note(file, "deaf hears")
		}
	case "parent":
		if err := Run(context.Background(), []Child{testChild("calm", file)}, quiet()); err != nil {
			return 1
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 2
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return 2
	}
	note(file, "%s token %q session of its own %t", role, os.Getenv("TOKEN"), session == os.Getpid())
	note(file, "%s begins %d uid %d", role, os.Getpid(), os.Getuid())
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "NoNewPrivs:") || strings.HasPrefix(line, "Groups:") {
			note(file, "%s %s", role, strings.Join(strings.Fields(line), " "))
		}
	}
	<-terms
	if role == "slow" {
		time.Sleep(100 * time.Millisecond)
	}
	note(file, "%s ends", role)
	return 0
}

func testChild(role, file string) Child {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Child{Name: role, Path: self, Args: []string{self, "child", role, file}, StopWithin: 20 * time.Second}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// await waits until the notes hold something so many times, and returns them.
func await(t *testing.T, file, want string, times int) string {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		notes, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if strings.Count(string(notes), want) >= times {
			return string(notes)
		}
		if time.Now().After(until) {
			t.Fatalf("waited for %q in %q", want, notes)
		}
	}
}

// begin runs children; stop ends them and returns Run's error.
func begin(t *testing.T, children ...Child) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, children, quiet()) }()
	return func() error {
		cancel()
		return <-done
	}
}

func TestTheLastIsStoppedFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	stop := begin(t, testChild("calm", file), testChild("slow", file))
	await(t, file, "calm begins", 1)
	await(t, file, "slow begins", 1)
	if err := stop(); err != nil {
		t.Error(err)
	}
	notes := await(t, file, "calm ends", 1)
	if slow := strings.Index(notes, "slow ends"); slow < 0 || slow > strings.Index(notes, "calm ends") {
		t.Errorf("ended in the wrong order:\n%s", notes)
	}
}

func TestACrashedChildIsStartedAgainAndOthersLive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	stop := begin(t, testChild("calm", file), testChild("crash", file))
	await(t, file, "crash begins", 3)
	// The end may meet it in the middle of a crash, and then says so.
	if err := stop(); err != nil && !strings.Contains(err.Error(), "crash ended") {
		t.Error(err)
	}
	if notes := await(t, file, "calm ends", 1); strings.Count(notes, "calm begins") != 1 {
		t.Errorf("the other did not live on:\n%s", notes)
	}
}

func TestADeafChildIsKilledAndNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	deaf := testChild("deaf", file)
	deaf.StopWithin = 200 * time.Millisecond
	stop := begin(t, deaf)
	await(t, file, "deaf begins", 1)
	if err := stop(); err == nil || !strings.Contains(err.Error(), "deaf did not end within 200ms") {
		t.Errorf("error %v", err)
	}
}

func TestAMissingProgramIsTriedAgain(t *testing.T) {
	var log testnet.Output
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	none := Child{Name: "none", Path: "/nonexistent/program", Args: []string{"program"}}
	go func() { done <- Run(ctx, []Child{none}, slog.New(slog.NewTextHandler(&log, nil))) }()
	for until := time.Now().Add(30 * time.Second); strings.Count(log.String(), "no such file") <
		2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("logged %q", log.String())
		}
	}
	cancel()
	if err := <-done; err != nil && !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func TestAConfinedChildGainsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	confined := testChild("calm", file)
	confined.Confined = true
	stop := begin(t, confined, testChild("slow", file))
	await(t, file, "calm NoNewPrivs: 1", 1)
	notes := await(t, file, "slow NoNewPrivs:", 1)
	if strings.Contains(notes, "slow NoNewPrivs: 1") && !selfConfined(t) {
		t.Errorf("confinement spreads:\n%s", notes)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// In its starter's session a process could type into the terminal, by TIOCSTI, what root's shell then runs.
//
//attack:face whoever has taken it over types commands into the terminal in which root has started the agent | it has
//attack:and a session of its own
//attack:face whoever has taken it over reads tokens in the environment of root's shell | it has no variables of root's
//attack:and but those by which programs find files
func TestAChildOfAnotherUserHasNoTerminalAndNoSecrets(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	file := filepath.Join(t.TempDir(), "notes")
	other := testChild("calm", file)
	other.Credential = &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), NoSetGroups: true}
	stop := begin(t, other, testChild("slow", file))
	await(t, file, `calm token "" session of its own true`, 1)
	await(t, file, `slow token "secret" session of its own true`, 1)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func selfConfined(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(status), "NoNewPrivs:\t1")
}

// TestChildrenEndWithAKilledParent: SIGKILL leaves no chance to say goodbye.
func TestChildrenEndWithAKilledParent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	parent := testChild("parent", file).command()
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(await(t, file, "calm begins", 1), "calm begins")
	pid, err := strconv.Atoi(strings.Fields(notes)[0])
	if err != nil || pid == parent.Process.Pid {
		t.Fatalf("notes %q, %v", notes, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // "signal: killed"
	await(t, file, "calm ends", 1)
}

// The phone app reads in the log that a part of its own node has ended, and why.
func TestThePhoneAppReadsThatAPartHasEnded(t *testing.T) {
	keeper, err := os.ReadFile("../../android-app/core/src/main/kotlin/dev/fieldmesh/core/node/NodeKeeper.kt")
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]string{}
	for _, c := range regexp.MustCompile(`const val (AGAIN|EXITED) = "(.*)"`).FindAllStringSubmatch(string(keeper), -1) {
		reads[c[1]] = c[2]
	}
	cause := regexp.MustCompile(`ERROR = Regex\("""(.*)"""\)`).FindStringSubmatch(string(keeper))
	if len(reads) != 2 || cause == nil {
		t.Fatalf("the app reads %v, and the cause by %q", reads, cause)
	}
	file := filepath.Join(t.TempDir(), "notes")
	var log testnet.Output
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, []Child{testChild("crash", file)}, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	await(t, file, "crash begins", 2)
	cancel()
	<-done
	lines := strings.Split(log.String(), "\n")
	line := lines[max(slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, reads["AGAIN"]) }), 0)]
	why := regexp.MustCompile(cause[1]).FindStringSubmatch(line)
	if !strings.Contains(line, reads["AGAIN"]) || why == nil || !strings.Contains(why[1], reads["EXITED"]) {
		t.Errorf("the app does not find %v, and the cause by %s, in %s", reads, cause[1], line)
	}
}
