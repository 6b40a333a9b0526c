package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/metrics/places"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/internal/lock"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

var few = campaigns.Choice{Campaign: "velocity-phones", SpeedsMps: []float64{2.8, 5.6}, Repetitions: 1}

func TestCallsAreThoseOfTheDescription(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../protocols/campaigns/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	for _, r := range routes() {
		served = append(served, r.method+" "+r.path)
	}
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("described:\n%s\nserved:\n%s", strings.Join(described, "\n"), strings.Join(served, "\n"))
	}
}

//attack:phone an app without the experimenter's role, or one that was revoked, has campaigns driven
func TestOnlyAnExperimentersPhoneIsAnswered(t *testing.T) {
	b := newBench(t)
	for who, client := range map[string]*http.Client{"another app": b.plain, "a node": b.node} {
		for _, r := range routes() {
			path := strings.NewReplacer("{run}", "velocity-1", "{file}", "report.html").Replace(r.path)
			_, err := b.do(client, r.method, path, map[bool]string{true: "{}"}[r.body])
			if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.CodeForbidden {
				t.Errorf("%s, %s %s: %v", who, r.method, path, err)
			}
		}
	}
	stranger := b.client(t, testnet.Identity(t, "stranger"))
	if _, err := b.do(stranger, http.MethodGet, "/v1/campaigns", ""); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a key that nobody paired: %v", err)
	}
	if len(b.driver.begun) > 0 {
		t.Errorf("begun: %v", b.driver.begun)
	}
}

//attack:network strangers who come while the fleet file cannot be read, to take the places of those who may | the
//attack:and list that could last be read is kept to, and who is refused loses the connection
func TestAFleetFileThatCannotBeReadIsSaid(t *testing.T) {
	b := newBench(t)
	stranger := b.client(t, testnet.Identity(t, "stranger"))
	path := filepath.Join(b.keys(), fleet.FileName)
	whole, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, whole[:len(whole)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.refused(t, http.MethodGet, "/v1/campaigns", nil, wire.CodeUnavailable)
	if _, err := b.do(stranger, http.MethodGet, "/v1/campaigns", ""); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a key that nobody paired: %v", err)
	}
	refused, err := b.plain.Get("https://" + b.at + "/v1/campaigns")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(refused.Body)
	if refused.Body.Close(); err != nil || refused.StatusCode != http.StatusForbidden || !refused.Close ||
		strings.Contains(string(text), path) {
		t.Errorf("who may not: %s, closed: %t, %s, %v", refused.Status, refused.Close, text, err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	ask[campaigns.Campaigns](t, b, http.MethodGet, "/v1/campaigns", nil)
}

//attack:phone a phone that is revoked while it waits for news of the runs | it is asked for again before it is answered
func TestAPhoneThatIsRevokedWhileItWaitsIsToldNothing(t *testing.T) {
	b := newBench(t)
	version := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Version
	waiting := make(chan error, 1)
	go func() {
		_, err := b.do(b.phone, http.MethodGet, "/v1/runs?wait_ms=2000&known="+strconv.FormatUint(version, 10), "")
		waiting <- err
	}()
	time.Sleep(200 * time.Millisecond) // it waits, or comes too late: refused either way
	if err := fleet.Revoke(b.keys(), "phone"); err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*wire.Error](<-waiting); !ok || e.Code != wire.CodeForbidden {
		t.Errorf("it is told: %v", e)
	}
}

//attack:phone an experimenter's phone that names files elsewhere, sends what never ends, or what is no choice | names
//attack:and are looked up in lists, and bodies are bounded and read strictly
func TestWhatIsNoRequestIsRefused(t *testing.T) {
	b := newBench(t)
	for what, c := range map[string]struct{ method, path, body, code string }{
		"another path":         {"GET", "/v1/nodes", "", wire.CodeNotFound},
		"another method":       {"PUT", "/v1/runs", "{}", wire.CodeMethodNotAllowed},
		"a folder above":       {"GET", "/v1/runs/..%2f..%2ffleet/files", "", wire.CodeNotFound},
		"a run's bad name":     {"GET", "/v1/runs/Velocity/files", "", wire.CodeBadRequest},
		"no such run":          {"POST", "/v1/runs/velocity-1/pause", "", wire.CodeNotFound},
		"its files":            {"GET", "/v1/runs/velocity-1/files", "", wire.CodeNotFound},
		"a file of none":       {"GET", "/v1/runs/velocity-1/files/report.html", "", wire.CodeNotFound},
		"a file elsewhere":     {"GET", "/v1/runs/velocity-1/files/..%2fcontroller.key", "", wire.CodeNotFound},
		"the run's own record": {"GET", "/v1/runs/velocity-1/files/run.json", "", wire.CodeNotFound},
		"a campaign elsewhere": {"POST", "/v1/plan", `{"campaign":"../fleet/fleet"}`, wire.CodeNotFound},
		"an absolute campaign": {"POST", "/v1/plan", `{"campaign":"/etc/passwd"}`, wire.CodeNotFound},
		"no campaign":          {"POST", "/v1/plan", `{}`, wire.CodeBadRequest},
		"an unknown name":      {"POST", "/v1/plan", `{"campaign":"velocity","shell":"sh"}`, wire.CodeBadRequest},
		"a name twice":         {"POST", "/v1/plan", `{"campaign":"velocity","campaign":"x"}`, wire.CodeBadRequest},
		"null":                 {"POST", "/v1/plan", `{"campaign":"velocity","speeds_mps":null}`, wire.CodeBadRequest},
		"a scale that is none": {"POST", "/v1/plan", `{"campaign":"velocity","scale":"--fleet"}`, wire.CodeBadRequest},
		"too fast":             {"POST", "/v1/plan", `{"campaign":"velocity","speeds_mps":[1e9]}`, wire.CodeBadRequest},
		"too often":            {"POST", "/v1/plan", `{"campaign":"velocity","repetitions":1000000}`, wire.CodeBadRequest},
		"a run named --resume": {"POST", "/v1/runs", `{"name":"../x","choice":{"campaign":"velocity"}}`, wire.CodeBadRequest},
		"for rehearsals only":  {"POST", "/v1/runs", `{"name":"x","choice":{"campaign":"reference-tcp"}}`, wire.CodeBadRequest},
		"too large":            {"POST", "/v1/plan", `{"campaign":"` + strings.Repeat("a", campaigns.BodyLimit) + `"}`, wire.CodeTooLarge},
		"an endless wait":      {"GET", "/v1/runs?wait_ms=30001", "", wire.CodeBadRequest},
		"an unknown parameter": {"GET", "/v1/runs?all=1", "", wire.CodeBadRequest},
		"a parameter twice":    {"GET", "/v1/runs?known=1&known=2", "", wire.CodeBadRequest},
	} {
		t.Run(what, func(t *testing.T) { b.refused(t, c.method, c.path, c.body, c.code) })
	}
	if len(b.driver.begun) > 0 {
		t.Errorf("begun: %v", b.driver.begun)
	}
}

func TestCampaignsAreOffered(t *testing.T) {
	b := newBench(t)
	if err := fleet.Revoke(b.keys(), "bravo"); err != nil {
		t.Fatal(err)
	}
	all := map[string]campaigns.Campaign{}
	for _, c := range ask[campaigns.Campaigns](t, b, http.MethodGet, "/v1/campaigns", nil).Campaigns {
		all[c.Name] = c
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, offeredNames) {
		t.Errorf("%v for %v", got, offeredNames)
	}
	speeds := []float64{2.8, 5.6, 8.3, 11.1, 13.9, 16.7}
	phones := all["velocity-phones"]
	if !slices.Equal(phones.SpeedsMps, speeds) || phones.Repetitions != 2 || phones.Refused != "" ||
		phones.Question == "" || !slices.Equal(phones.Nodes, []string{"alpha", "bravo"}) ||
		!slices.Equal(phones.Missing, []string{"bravo"}) {
		t.Errorf("velocity-phones: %+v", phones)
	}
	if powered := all["velocity-powered"]; !strings.Contains(powered.Refused, "site_lat_deg") {
		t.Errorf("velocity-powered: %+v", powered)
	}
	if r := all["range-test"]; !r.RangeTest || r.Refused != "" || r.SpeedsMps != nil || phones.RangeTest {
		t.Errorf("range-test: %+v, velocity-phones: %+v", r, phones)
	}
	if grid := all["variants-grid"]; grid.SpeedsMps != nil || len(grid.Scales) == 0 || grid.Scales[0].Text == "" {
		t.Errorf("variants-grid: %+v", grid)
	}
	if reference := all["reference-tcp"]; !strings.Contains(reference.Refused, "across a relay of another") {
		t.Errorf("reference-tcp: %+v", reference)
	}
}

func TestAFileWithFaultsIsOfferedWithThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(path, []byte("fieldmesh: 1\nname: broken\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := describe(path); c.Name != "broken" || !strings.Contains(c.Refused, "broken.yaml:1") || c.SpeedsMps != nil {
		t.Errorf("%+v", c)
	}
}

func TestAPlanHasTheNumbersOfPlanShow(t *testing.T) {
	b := newBench(t)
	whole, err := plan.Load("../../campaigns/velocity-phones.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := whole.Estimate()
	p := ask[campaigns.Planned](t, b, http.MethodPost, "/v1/plan", campaigns.Choice{Campaign: "velocity-phones"})
	if p.Trials != 24 || p.TimeS != e.RoadTotalS || p.RoadM == nil || *p.RoadM != e.SpanM() || p.Repetitions != 2 ||
		len(p.SpeedsMps) != 6 || p.Deviations != nil {
		t.Errorf("whole: %+v", p)
	}
	p = ask[campaigns.Planned](t, b, http.MethodPost, "/v1/plan", few)
	if p.Trials != 4 || p.TimeS >= e.RoadTotalS || *p.RoadM >= e.SpanM() || p.Repetitions != 1 ||
		!slices.Equal(p.SpeedsMps, few.SpeedsMps) || len(p.Deviations) != 1 {
		t.Errorf("few: %+v", p)
	}
	if e := b.refused(t, http.MethodPost, "/v1/plan", campaigns.Choice{Campaign: "velocity-phones",
		SpeedsMps: []float64{-3}}, wire.CodeBadRequest); !strings.Contains(e.Message, "factors.speed.levels") {
		t.Errorf("a speed that cannot be: %v", e)
	}
}

func TestAPreflightTellsNeedsAndCures(t *testing.T) {
	b := newBench(t)
	p := ask[campaigns.Preflight](t, b, http.MethodPost, "/v1/preflight", few)
	if p.Ready || len(p.Needs) != 1 || p.Needs[0] != (campaigns.Need{Node: "alpha", Need: "gps", Outcome: "unmet",
		Found: "no fix", Cure: "go outside"}) {
		t.Errorf("%+v", p)
	}
}

func TestARunIsBegunOnce(t *testing.T) {
	b := newBench(t)
	const name = "phones-1"
	for range 2 {
		r := ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
		if r.Phase != campaigns.Running || r.Trials != 4 || r.Campaign != "velocity-phones" || r.Place != "road" {
			t.Errorf("begun: %+v", r)
		}
	}
	if want := [][]string{{"run", filepath.Join(b.runs(), ".serve", name, "campaign.yaml"), "--name=" + name,
		"--or-resume", "--scale=chosen", "--place=road", "--fleet=" + filepath.Join(b.keys(), "fleet.yaml"),
		"--runs=" + b.runs()}}; !slices.EqualFunc(b.driver.begun, want, slices.Equal) {
		t.Errorf("begun: %v", b.driver.begun)
	}
	other := few
	other.Repetitions = 2
	b.refused(t, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: other}, wire.CodeConflict)
	b.refused(t, http.MethodPost, "/v1/runs", campaigns.Start{Name: "phones-2", Choice: few}, wire.CodeConflict)

	// It is refused, says why, and goes on when that is mended.
	output := filepath.Join(own(b.runs(), name), outputFile)
	said := "time=… level=WARN msg=\"waiting, at most 20s\"\nfieldmesh: 1 need is not met:\n  alpha: gps: no fix\n"
	if err := os.WriteFile(output, []byte(said), 0o644); err != nil {
		t.Fatal(err)
	}
	b.driver.ends(name)
	all := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Runs
	if len(all) != 1 || all[0].Phase != campaigns.Failed || all[0].Said != "1 need is not met:\n  alpha: gps: no fix" {
		t.Errorf("failed: %+v", all)
	}
	if f := ask[campaigns.Files](t, b, http.MethodGet, "/v1/runs/"+name+"/files", nil); len(f.Files) > 0 {
		t.Errorf("files of a run that was refused: %+v", f)
	}
	b.steer(t, name, "resume")
	if r := b.steer(t, name, "resume"); r.Phase != campaigns.Running || r.Said != "" || len(b.driver.begun) != 2 {
		t.Errorf("resumed: %+v, begun %v", r, b.driver.begun)
	}
}

func TestARunIsPausedAndEnded(t *testing.T) {
	b := newBench(t)
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	b.archived(t, name)
	b.wrong = []string{"bravo: not told to stop: no answer"}
	nodes := []string{"alpha", "bravo"}
	r := b.steer(t, name, "pause")
	if r.Phase != campaigns.Paused || r.Said != b.wrong[0] || len(b.restored) != 1 ||
		!slices.Equal(b.restored[0], nodes) {
		t.Errorf("paused: %+v, restored %v", r, b.restored)
	}
	b.wrong = nil // a node that was out of reach is told once more
	if r = b.steer(t, name, "pause"); r.Phase != campaigns.Paused || r.Said != "" || len(b.restored) != 2 {
		t.Errorf("paused again: %+v, restored %v", r, b.restored)
	}
	b.wrong = []string{"bravo: not told to stop: no answer"}
	if r = b.steer(t, name, "resume"); r.Phase != campaigns.Running || r.Said != "" {
		t.Errorf("resumed: %+v", r)
	}
	if r = b.steer(t, name, "end"); r.Phase != campaigns.Ended || r.Said != b.wrong[0] || len(b.restored) != 3 {
		t.Errorf("ended: %+v", r)
	}
	b.wrong = nil
	for range 2 { // told once more, and then no more
		if r = b.steer(t, name, "end"); r.Phase != campaigns.Ended || r.Said != "" || len(b.restored) != 4 {
			t.Errorf("ended again: %+v, restored %v", r, b.restored)
		}
	}
	b.refused(t, http.MethodPost, "/v1/runs/"+name+"/resume", nil, wire.CodeConflict)
	if r = b.steer(t, name, "pause"); r.Phase != campaigns.Ended || len(b.driver.begun) != 2 {
		t.Errorf("paused after its end: %+v", r)
	}
	// Its nodes are another's now.
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: "phones-2", Choice: few})
	if b.steer(t, name, "end"); len(b.restored) != 4 {
		t.Errorf("the nodes of another run were restored: %v", b.restored)
	}
}

// What could not be collected is told, and collected when the nodes are put back. Meanwhile this
// server holds the archive itself, which does not make the run one under way.
func TestWhatCouldNotBeCollectedIsTold(t *testing.T) {
	b := newBench(t)
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	b.archived(t, name)
	fl, err := fleet.Load(b.fleet)
	if err != nil {
		t.Fatal(err)
	}
	b.collect = func() []string {
		b.driver.mu.Lock()
		b.driver.foreign[name] = Process{PID: 77}
		b.driver.mu.Unlock()
		defer func() {
			b.driver.mu.Lock()
			defer b.driver.mu.Unlock()
			delete(b.driver.foreign, name)
		}()
		if r, err := b.board.one(name); err != nil || r.Phase != campaigns.Ended {
			t.Errorf("while its last records are collected: %+v, %v", r, err)
		}
		return b.collectLast(t.Context(), fl, name) // nobody is at the nodes' addresses
	}
	want := fmt.Sprintf(recordedLast+"\n"+recordedLast, "alpha", "bravo")
	if r := b.steer(t, name, "end"); r.Phase != campaigns.Ended || r.Said != want {
		t.Errorf("ended: %+v", r)
	}
	b.collect = nil
	if r := b.steer(t, name, "pause"); r.Phase != campaigns.Ended || r.Said != "" || len(b.collected) != 2 {
		t.Errorf("put back: %+v, collected %v", r, b.collected)
	}
}

func TestAnEndThatTakesLongIsMadeUpFor(t *testing.T) {
	b := newBench(t)
	b.endTime = 50 * time.Millisecond
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	b.driver.slow = true
	for range 2 {
		b.refused(t, http.MethodPost, "/v1/runs/"+name+"/end", nil, wire.CodeUnavailable)
	}
	if len(b.driver.stopped) != 1 || len(b.restored) > 0 {
		t.Errorf("interrupted %v, restored %v", b.driver.stopped, b.restored)
	}
	b.driver.ends(name)
	all := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Runs
	if len(all) != 1 || !strings.Contains(all[0].Said, restoreDue) {
		t.Errorf("its nodes may go on: %+v", all)
	}
	for range 2 { // no archive is there yet
		r := b.steer(t, name, "end")
		if r.Phase != campaigns.Ended || r.Said != "" || len(b.restored) != 1 ||
			!slices.Equal(b.restored[0], []string{"alpha", "bravo"}) {
			t.Errorf("ended: %+v, restored %v", r, b.restored)
		}
	}
}

func TestAProcessThatEndsByItselfIsTold(t *testing.T) {
	b := newBench(t)
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	b.driver.ends(name)
	all := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Runs
	if len(all) != 1 || all[0].Phase != campaigns.Paused || all[0].Said != byItself {
		t.Errorf("killed: %+v", all)
	}
	if r := b.steer(t, name, "pause"); r.Phase != campaigns.Paused || r.Said != "" || len(b.restored) != 1 {
		t.Errorf("paused: %+v, restored %v", r, b.restored)
	}
}

func TestNodesOfACompleteRunThatAreNotPutBackAreTold(t *testing.T) {
	b := newBench(t)
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	b.driver.ends(name)
	a, err := synthetic.Build(filepath.Join(b.runs(), name), synthetic.Options{Seed: 1, Repetitions: 1,
		Place: archive.PlaceRoad, Speeds: []float64{2.8, 5.6}})
	if err == nil {
		err = a.Finish()
	}
	rec, readErr := readRecord(b.runs(), name)
	if err = errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	rec.RestoreDue, rec.Said = true, "bravo is out of reach"
	if err := rec.write(b.runs(), name); err != nil {
		t.Fatal(err)
	}
	all := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Runs
	if len(all) != 1 || all[0].Phase != campaigns.Complete || all[0].Said != rec.Said {
		t.Errorf("%+v", all)
	}
	if r := b.steer(t, name, "pause"); r.Phase != campaigns.Complete || r.Said != "" || len(b.restored) != 1 {
		t.Errorf("put back: %+v, restored %v", r, b.restored)
	}
}

func TestOneServerHasAFolderOfRuns(t *testing.T) {
	b := newBench(t)
	other, err := New(Config{Fleet: b.fleet, Campaigns: b.campaigns, Runs: b.runs(), Driver: b.driver, Log: b.log})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil) // it serves
	if err := other.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "another `fieldmesh serve`") {
		t.Errorf("a second: %v", err)
	}
}

func TestFilesOfMovementAreKeptWithARun(t *testing.T) {
	b := newBench(t)
	text, err := os.ReadFile("../../campaigns/variants-grid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.campaigns, "walk.yaml")
	for file, data := range map[string]string{path: string(text),
		filepath.Join(b.campaigns, "movement", "walk.tcl"): "# nobody moves\n"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := plan.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c.Field.Mobility.File = "movement/walk.tcl"
	if err := b.keep("walk-1", chosen{text: text, campaign: c}); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(own(b.runs(), "walk-1"), "movement", "walk.tcl")
	if data, err := os.ReadFile(kept); err != nil || string(data) != "# nobody moves\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// The lock of a run is found at who holds it, not at who only has it open.
func TestTheHolderOfALockIsFound(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, archive.LockFile)
	open, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if p, err := (Programs{}).Holder(dir); err == nil {
		t.Errorf("found %+v, which only has it open", p)
	}
	held, err := lock.Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	p, err := Programs{}.Holder(dir)
	if err != nil || p.PID != os.Getpid() || !(Programs{}).Alive(p) {
		t.Errorf("found %+v, %v", p, err)
	}
	if p.Ticks++; (Programs{}).Alive(p) {
		t.Error("a process of the same number that began at another time is taken for it")
	}
}

func TestAServerThatComesLaterKnowsTheRuns(t *testing.T) {
	b := newBench(t)
	for i, name := range []string{"phones-1", "phones-2"} {
		ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
		b.archived(t, name)
		if i == 0 {
			b.steer(t, name, "end")
		}
	}
	before := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Version
	b.end()
	b.Server = b.serve(t)
	all := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil)
	if len(all.Runs) != 2 || all.Runs[0].Name != "phones-2" || all.Runs[0].Phase != campaigns.Running ||
		all.Runs[0].LeftS == nil || all.Runs[1].Phase != campaigns.Ended || all.Version <= before {
		t.Errorf("known: %+v, before %d", all, before)
	}
	b.refused(t, http.MethodPost, "/v1/runs", campaigns.Start{Name: "phones-3", Choice: few}, wire.CodeConflict)
	if r := b.steer(t, "phones-2", "pause"); r.Phase != campaigns.Paused || !slices.Equal(b.driver.stopped,
		[]string{"phones-1", "phones-2"}) {
		t.Errorf("paused: %+v, stopped %v", r, b.driver.stopped)
	}
}

func TestRunsOfOthersAreShown(t *testing.T) {
	b := newBench(t)
	a, err := synthetic.Build(filepath.Join(b.runs(), "rehearsed-1"), synthetic.Options{Seed: 1, Repetitions: 1,
		Speeds: []float64{2.8, 5.6}})
	if err == nil {
		err = a.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	all := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Runs
	if len(all) != 1 || all[0].Phase != campaigns.Complete || all[0].Accepted != 4 || all[0].Place != "rehearsal" ||
		all[0].Sheet != nil {
		t.Errorf("%+v", all)
	}
	for _, what := range []string{"pause", "resume", "end"} {
		b.refused(t, http.MethodPost, "/v1/runs/rehearsed-1/"+what, nil, wire.CodeConflict)
	}
	files := ask[campaigns.Files](t, b, http.MethodGet, "/v1/runs/rehearsed-1/files", nil).Files
	if len(files) != 5 {
		t.Errorf("files: %+v", files)
	}
	for _, f := range files {
		data, err := b.do(b.phone, http.MethodGet, "/v1/runs/rehearsed-1/files/"+f.Name, "")
		if err != nil || int64(len(data)) != f.Bytes {
			t.Errorf("%s: %d bytes of %d, %v", f.Name, len(data), f.Bytes, err)
		}
	}
}

// A photo that comes after the run is in the report that is shared, which is made again for it.
func TestAReportThatIsSharedKnowsOfLatePhotos(t *testing.T) {
	b := newBench(t)
	a, err := synthetic.Build(filepath.Join(b.runs(), "rehearsed-1"), synthetic.Options{Seed: 1, Repetitions: 1,
		Speeds: []float64{2.8}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("x"))
	photo := wire.Attachment{MediaType: "image/jpeg", Bytes: 1, SHA256: hex.EncodeToString(sum[:])}
	err = synthetic.Store(a, "car", []wire.Record{{Header: wire.Header{Node: "car", Epoch: "notes", Seq: 1,
		Run: a.Info().Run}, Body: &wire.Noted{ID: "1", Note: "mark", Text: "bus", By: "phone", Attachment: &photo}}})
	if err := errors.Join(err, a.Finish()); err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		page, err := b.do(b.phone, http.MethodGet, "/v1/runs/rehearsed-1/files/report.html", "")
		if err != nil || !strings.Contains(string(page), want) || strings.Contains(string(page), "<img") {
			t.Errorf("the report does not say %q: %v", want, err)
		}
	}
	says("Its photo is not in the archive")
	if err := errors.Join(a.AppendFile(photo.Path(), []byte("x")), a.CloseFile(photo.Path(), photo.SHA256),
		a.Finish()); err != nil {
		t.Fatal(err)
	}
	says("Its photo is in the run's folder on the controller")
}

// What was logged by place is told and shared also of a run that was ended in its first attempt.
func TestPlacesOfAnUnfinishedRunAreTold(t *testing.T) {
	b := newBench(t)
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	path := "/v1/runs/" + name
	b.archived(t, name)
	a, err := archive.Open(filepath.Join(b.runs(), name))
	if err != nil {
		t.Fatal(err)
	}
	car := a.Info().Plan.Trials[0].Car
	add := func(seq uint64, s float64, body wire.Body) {
		t.Helper()
		r := wire.Record{Header: wire.Header{Node: car, Epoch: "e", Seq: seq, TBootNs: int64(s * 1e9), Run: name,
			Trial: 1, Attempt: 1}, Body: body}
		if err := synthetic.Store(a, car, []wire.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	add(1, 0, &wire.Window{CloseBootNs: 10e9})
	for i := range 40 { // four seconds
		s := float64(i) / 10
		add(uint64(i+2), s, &wire.GPS{Mode: 3, FixBootNs: new(int64(s * 1e9)), LatDeg: new(50 + s/1e4),
			LonDeg: new(8.0), SpeedMps: new(11.0)})
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ask[campaigns.Places](t, b, http.MethodGet, path+"/places", nil); len(got.Way) > 0 {
		t.Errorf("of an attempt under way: %+v", got)
	}
	b.steer(t, name, "end")
	if !slices.Equal(b.collected, []string{name}) {
		t.Errorf("what was recorded last was collected of %v", b.collected)
	}
	got := ask[campaigns.Places](t, b, http.MethodGet, path+"/places", nil)
	if len(got.Way) < 4 || len(got.Way) > 6 || len(got.Stretches) > 0 || got.FarthestM != nil {
		t.Errorf("without the other's place there is no distance: %+v", got)
	}
	files := ask[campaigns.Files](t, b, http.MethodGet, path+"/files", nil).Files
	if len(files) != 2 || files[0].Name != "places.csv" || files[1].Name != "places.gpx" {
		t.Errorf("files: %+v", files)
	}
	b.refused(t, http.MethodGet, path+"/files/report.html", nil, wire.CodeNotFound)
}

// The way is not told as one where nothing was logged: between attempts, and within one.
func TestGapsOfTheWayAreTold(t *testing.T) {
	log := places.Log{}
	for _, at := range []struct{ trial, s int }{{1, 0}, {1, 1}, {1, 5}, {1, 6}, {2, 7}} {
		log.Seconds = append(log.Seconds, places.Second{TrialKey: wire.TrialKey{Trial: at.trial, Attempt: 1}, S: at.s,
			LatDeg: new(50.0), LonDeg: new(8.0)})
	}
	var gaps []bool
	for _, spot := range placesOf(log).Way {
		gaps = append(gaps, spot.AfterGap)
	}
	if !slices.Equal(gaps, []bool{false, false, true, false, true}) {
		t.Errorf("%v", gaps)
	}
	for range 3 * campaigns.MostSpots { // of which a part is told
		log.Seconds = append(log.Seconds, places.Second{S: 8 + len(log.Seconds), LatDeg: new(50.0), LonDeg: new(8.0)})
	}
	for _, spot := range placesOf(log).Way[3:] {
		if spot.AfterGap {
			t.Error("a gap among the seconds that follow each other")
			break
		}
	}
}

func TestAWaitEndsWithTheNextChange(t *testing.T) {
	b := newBench(t)
	version := ask[campaigns.Runs](t, b, http.MethodGet, "/v1/runs", nil).Version
	waited := make(chan campaigns.Runs, 1)
	go func() {
		path := "/v1/runs?wait_ms=20000&known=" + strconv.FormatUint(version, 10)
		waited <- ask[campaigns.Runs](t, b, http.MethodGet, path, nil)
	}()
	begun := time.Now()
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: "phones-1", Choice: few})
	if runs := <-waited; len(runs.Runs) != 1 || runs.Version == version || time.Since(begun) > 10*time.Second {
		t.Errorf("after %v: %+v", time.Since(begun), runs)
	}
}

// A record of an old run that cannot be read keeps nobody from beginning another.
func TestARecordThatCannotBeReadIsPassedOver(t *testing.T) {
	b := newBench(t)
	bad := own(b.runs(), "last-year")
	if err := os.MkdirAll(bad, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bad, recordFile), []byte{0, 0}, 0o644); err != nil {
		t.Fatal(err)
	}
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: "phones-1", Choice: few})
	if len(b.driver.begun) != 1 {
		t.Errorf("begun: %v", b.driver.begun)
	}
}

// Nodes are put back though the controller's disk cannot be written, and the phone is told what cannot be noted.
func TestNodesArePutBackThoughNothingCanBeNoted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	b := newBench(t)
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	b.archived(t, name)
	known, copied := own(b.runs(), name), t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(known)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("known", known, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(known, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.CopyFS(known, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(known, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	b.driver.ends(name)
	_, err = b.do(b.phone, http.MethodPost, "/v1/runs/"+name+"/end", "")
	if len(b.restored) != 1 || err == nil || !strings.Contains(err.Error(), "cannot be noted") {
		t.Errorf("%v; restored %v", err, b.restored)
	}
}

// While one's run is driven, nobody has its nodes look at themselves.
func TestNoPreflightDuringARun(t *testing.T) {
	b := newBench(t)
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: "phones-1", Choice: few})
	choice, err := json.Marshal(few)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.do(b.pair(t, "phone-2", true), http.MethodPost, "/v1/preflight", string(choice)); err == nil ||
		!strings.Contains(err.Error(), "run phones-1 is under way") {
		t.Errorf("%v", err)
	}
}
