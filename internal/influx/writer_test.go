package influx

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const secret = "hunter2 secret"

// server is a hand-written InfluxDB: it asks answer what to say to each write.
type server struct {
	mu      sync.Mutex
	stored  []string // lines, in the order in which they were stored
	queries []string
	writes  int
	answer  func(n int, lines []string) (code int, body string, header map[string]string)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/query" {
		s.queries = append(s.queries, r.FormValue("q"))
		fmt.Fprint(w, `{"results":[{"statement_id":0}]}`)
		return
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := io.ReadAll(z)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.writes++
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	code, body, header := s.answer(s.writes, lines)
	for k, v := range header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(code)
	fmt.Fprint(w, body)
	if code == http.StatusNoContent {
		s.stored = append(s.stored, lines...)
	}
}

// start serves s and returns a writer to it whose waits are only noted.
func start(t *testing.T, s *server) (*Writer, *[]time.Duration) {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	waits := &[]time.Duration{}
	return &Writer{
		Target:   Target{URL: web.URL, Database: "field", User: "car", Password: secret},
		Patience: time.Minute,
		Wait:     func(_ context.Context, d time.Duration) error { *waits = append(*waits, d); return nil },
		Jitter:   func() float64 { return 1 },
	}, waits
}

func ok(int, []string) (int, string, map[string]string) { return http.StatusNoContent, "", nil }

func TestWriteSendsOneGzipBatchWithItsTarget(t *testing.T) {
	var got *http.Request
	s := &server{answer: ok}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(r.Context())
		s.ServeHTTP(w, r)
	}))
	defer web.Close()
	w := &Writer{Target: Target{URL: web.URL + "/influx/", Database: "my db", User: "car", Password: secret}}
	refused, err := w.Write(t.Context(), []byte("m a=1i 1\nm a=2i 2"))
	if err != nil || len(refused) != 0 {
		t.Fatal(refused, err)
	}
	user, password, _ := got.BasicAuth()
	if got.Method != "POST" || got.URL.Path != "/influx/write" || got.URL.RawQuery != "db=my+db&precision=ns" ||
		user != "car" || password != secret {
		t.Errorf("%s %s as %s", got.Method, got.URL, user)
	}
	if len(s.stored) != 2 {
		t.Errorf("stored %q", s.stored)
	}
}

func TestAwayAndBack(t *testing.T) {
	s := &server{answer: func(n int, _ []string) (int, string, map[string]string) {
		switch {
		case n == 2:
			return 429, "", map[string]string{"Retry-After": "7"}
		case n < 5:
			return 503, `{"error":"timeout"}`, nil
		}
		return ok(0, nil)
	}}
	w, waits := start(t, s)
	var told []string
	w.Outage = func(err error) { told = append(told, fmt.Sprint(err)) }
	if _, err := w.Write(t.Context(), []byte("m a=1i 1\n")); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{250 * time.Millisecond, 7 * time.Second, time.Second, 2 * time.Second}
	if fmt.Sprint(*waits) != fmt.Sprint(want) {
		t.Errorf("waited %v, want %v", *waits, want)
	}
	if fmt.Sprint(told) != "[influxdb answers 503: timeout <nil>]" {
		t.Errorf("told %v, want one failure and its end", told)
	}
	if len(s.stored) != 1 {
		t.Errorf("stored %q", s.stored)
	}
}

func TestPatienceEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	w, waits := start(t, &server{answer: ok})
	w.Target.URL = "http://" + address
	_, err = w.Write(t.Context(), []byte("m a=1i 1\n"))
	if !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), address) || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v", err)
	}
	var sum time.Duration
	for _, d := range *waits {
		sum += d
	}
	if sum > time.Minute || sum < 20*time.Second {
		t.Errorf("waited %v in all, patience is a minute", sum)
	}
}

// silent is a network that drops what it is given.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Where nothing refuses a connection, and nothing answers, each try would take its full time.
func TestPatienceEndsWithoutAnyAnswer(t *testing.T) {
	for patience, most := range map[time.Duration]time.Duration{time.Nanosecond: leastTime, leastTime: leastTime,
		time.Minute: time.Minute + leastTime} {
		synctest.Test(t, func(t *testing.T) {
			w := &Writer{Target: Target{URL: "http://192.0.2.1:8086", Database: "field"}, Patience: patience,
				Client: &http.Client{Transport: silent{}}}
			begun := time.Now()
			if err := w.Prepare(t.Context()); !errors.Is(err, ErrAway) {
				t.Errorf("error %v", err)
			}
			if took := time.Since(begun); took > most || took < patience/2 {
				t.Errorf("it took %v, patience is %v", took, patience)
			}
		})
	}
}

func TestCancelEndsTheWait(t *testing.T) {
	w, _ := start(t, &server{answer: func(int, []string) (int, string, map[string]string) { return 503, "", nil }})
	ctx, cancel := context.WithCancel(t.Context())
	w.Wait, w.Patience = nil, 0
	w.Outage = func(error) { cancel() }
	if _, err := w.Write(ctx, []byte("m a=1i 1\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Bad lines are found one by one; every good line is stored, also where the
// server drops a batch whole.
func TestBadLinesAreSetAside(t *testing.T) {
	s := &server{answer: func(_ int, lines []string) (int, string, map[string]string) {
		for _, l := range lines {
			if strings.Contains(l, "bad") {
				return 422, `{"code":"unprocessable","message":"field type conflict"}`, nil
			}
		}
		return ok(0, nil)
	}}
	w, _ := start(t, s)
	var batch strings.Builder
	for i := range 1000 {
		name := "m"
		if i == 0 || i == 417 || i == 999 {
			name = "bad"
		}
		fmt.Fprintf(&batch, "%s a=%di %d\n", name, i, i)
	}
	refused, err := w.Write(t.Context(), []byte(batch.String()))
	if err != nil || len(refused) != 3 || refused[1] != (Refusal{"bad a=417i 417", "field type conflict"}) {
		t.Fatalf("refused %v, error %v", refused, err)
	}
	seen := map[string]int{}
	for _, l := range s.stored {
		seen[l]++
	}
	if len(seen) != 997 || len(s.stored) != 997 {
		t.Errorf("%d lines stored, %d different, want 997", len(s.stored), len(seen))
	}
	if s.writes > 80 {
		t.Errorf("%d calls to find three lines of 1000", s.writes)
	}
}

func TestEverythingRefusedIsAnError(t *testing.T) {
	w, _ := start(t, &server{answer: func(int, []string) (int, string, map[string]string) {
		return 400, `{"error":"no such thing"}`, nil
	}})
	_, err := w.Write(t.Context(), []byte(strings.Repeat("m a=1i 1\n", 500)))
	if err == nil || !strings.Contains(err.Error(), "line after line: no such thing") {
		t.Errorf("error %v", err)
	}
}

func TestTooLargeIsHalved(t *testing.T) {
	s := &server{answer: func(_ int, lines []string) (int, string, map[string]string) {
		if len(lines) > 10 {
			return 413, "", nil
		}
		return ok(0, nil)
	}}
	w, _ := start(t, s)
	refused, err := w.Write(t.Context(), []byte(strings.Repeat("m a=1i 1\n", 64)))
	if err != nil || len(refused) != 0 || len(s.stored) != 64 {
		t.Errorf("stored %d, refused %v, error %v", len(s.stored), refused, err)
	}
}

func TestFinalAnswers(t *testing.T) {
	for code, want := range map[int]string{
		401: `as user "car": influxdb refuses access: influxdb answers 401: no *** here; check user and ` +
			"password (InfluxDB 2.x: the token is the password)",
		403: "influxdb refuses access",
		404: "influxdb answers 404",
		307: "it redirects elsewhere",
	} {
		calls := 0
		w, waits := start(t, &server{answer: func(int, []string) (int, string, map[string]string) {
			calls++
			return code, `{"error":"no ` + secret + ` here"}`, map[string]string{"Location": "http://192.0.2.1/write"}
		}})
		_, err := w.Write(t.Context(), []byte("m a=1i 1\nm a=2i 2\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%d: error %v, want %q", code, err, want)
		}
		if calls != 1 || len(*waits) != 0 {
			t.Errorf("%d: %d calls, waits %v", code, calls, *waits)
		}
		if (code == 401 || code == 403) != errors.Is(err, ErrAccess) {
			t.Errorf("%d: ErrAccess %v", code, errors.Is(err, ErrAccess))
		}
	}
}

// What a person can do is said beside what went wrong.
func TestWhatToDoAboutAServerIsSaid(t *testing.T) {
	bucket := `{"code":"not found","message":"bucket \"field\" not found"}`
	for _, c := range []struct {
		code       int
		body, want string
	}{
		{404, bucket, "; make the bucket there, or name another by --database"},
		{404, "<html><body>no", "influxdb answers 404: Not Found, as a web page: is that an InfluxDB?"},
	} {
		w, _ := start(t, &server{answer: func(int, []string) (int, string, map[string]string) {
			return c.code, c.body, nil
		}})
		if _, err := w.Write(t.Context(), []byte("m a=1i 1\n")); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.body, err, c.want)
		}
	}
	for url, want := range map[string]string{
		"http://127.0.0.1:9":        "connection refused; is InfluxDB running there?",
		"http://influx.invalid:808": "no such host; correct the name in --influx",
	} {
		var told error
		w := &Writer{Target: Target{URL: url, Database: "field"}, Patience: time.Nanosecond}
		w.Outage = func(err error) { told = errors.Join(told, err) }
		if _, err := w.Write(t.Context(), []byte("m a=1i 1\n")); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", url, err, want)
		}
	}
}

// A server that answers TLS with a text of its own does not speak it either.
func TestAServerThatKnowsNoHTTPVersionIsReported(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("<!DOCTYPE HTML>\n"))
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	w := &Writer{Target: Target{URL: "https://" + l.Addr().String(), Database: "field"}, Patience: time.Nanosecond}
	want := "it does not speak TLS: if that is an InfluxDB, its address begins with http://"
	if _, err := w.Write(t.Context(), []byte("m a=1i 1\n")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}

// An address with the wrong scheme is never right later: nothing is waited for.
func TestTheWrongSchemeIsReported(t *testing.T) {
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was understood") })
	plain, secure := httptest.NewServer(answer), httptest.NewUnstartedServer(answer)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for url, want := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1): "this server speaks http, not https; give its address as " +
			plain.URL,
		strings.Replace(secure.URL, "https:", "http:", 1): "this server speaks https, not http; give its address as " +
			secure.URL,
	} {
		w := &Writer{Target: Target{URL: url, Database: "d"}, Wait: func(context.Context, time.Duration) error {
			t.Errorf("%s: it waits", url)
			return nil
		}}
		if err := w.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

func TestMissingDatabaseIsMade(t *testing.T) {
	s := &server{}
	s.answer = func(int, []string) (int, string, map[string]string) {
		if len(s.queries) == 0 {
			return 404, `{"error":"database not found: \"fi\\\"eld\""}`, nil
		}
		return ok(0, nil)
	}
	w, _ := start(t, s)
	w.Target.Database = `fi"eld`
	if _, err := w.Write(t.Context(), []byte("m a=1i 1\n")); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(s.queries) != `[CREATE DATABASE "fi\"eld"]` || len(s.stored) != 1 {
		t.Errorf("queries %v, stored %v", s.queries, s.stored)
	}
}

// What is to be forgotten is named by tags and time; a server says within an answer of 200 that it did not.
func TestForget(t *testing.T) {
	answer := `{"results":[{"statement_id":0}]}`
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.FormValue("db")+" "+r.FormValue("q"))
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(web.Close)
	w := &Writer{Target: Target{URL: web.URL, Database: "field"}, Patience: time.Minute}
	forget := func() error {
		return w.Forget(t.Context(), "fm_result", map[string]string{"run": `it's`, "trial": "7"},
			time.Unix(0, 1_234_567_890_123_456_789))
	}
	if err := forget(); err != nil {
		t.Error(err)
	}
	want := `/query field DELETE FROM "fm_result" WHERE "run" = 'it\'s' AND "trial" = '7' AND time >= 1234567890123456789 AND time <= 1234567890123456789`
	if len(asked) != 1 || asked[0] != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
	answer = `{"results":[{"statement_id":0,"error":"database not found: field"}]}`
	if err := forget(); err != nil {
		t.Errorf("nothing is there to forget: %v", err)
	}
	answer = `{"results":[{"statement_id":0,"error":"not implemented: DELETE"}]}`
	if err := forget(); err == nil || !strings.Contains(err.Error(), "not implemented: DELETE") {
		t.Errorf("%v", err)
	}
}

//attack:local another user who reads the database's password in a command line or a log | an address with a password
//attack:and is refused, and none is printed
func TestTargetsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ target Target }{
		{Target{URL: "http://car:" + "hunter2@h:8086", Database: "d"}},
		{Target{URL: "http://car:hunter2@h:80 86%zz", Database: "d"}},
		{Target{URL: "localhost:8086", Database: "d"}},
		{Target{URL: "ftp://h", Database: "d"}},
		{Target{URL: "http://h?u=car&p=hunter2", Database: "d"}},
		{Target{URL: "http://h:8086"}},
		{Target{URL: "http://h:8086", Database: "a\nb"}},
		{Target{URL: "http://h:8086", Database: "d", Password: "hunter2"}},
	} {
		err := c.target.Validate()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", c.target.URL, err)
		}
	}
	good := Target{URL: "https://h:8086/influx", Database: "d", User: "u", Password: "hunter2"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", good, good, good, good); strings.Contains(text, "hunter2") {
		t.Errorf("a printed target shows its password: %s", text)
	}
}

// Whoever sends a password where others can read it is told so, once, without it.
//
//attack:network somebody on the way to the database who reads its password | https is taken, and who
//attack:and sends a password without it to another machine is warned
func TestAPasswordInTheClearIsTold(t *testing.T) {
	t.Setenv(PasswordVariable, "hunter2")
	for url, warns := range map[string]bool{
		"http://192.0.2.1:8086": true, "http://db.example:8086": true, "https://192.0.2.1:8086": false,
		"http://127.0.0.1:8086": false, "http://[::1]:8086": false, "http://localhost:8086": false,
	} {
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		for user, want := range map[string]bool{"car": warns, "": false} {
			said.Reset()
			if _, err := Open(Target{URL: url, Database: "d", User: user}, "", log); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(said.String(), "use https://"); got != want ||
				strings.Contains(said.String(), "hunter2") {
				t.Errorf("%s, user %q: %q", url, user, said.String())
			}
		}
	}
}

// A file with a password for nobody is not passed over: InfluxDB 2 would refuse every line, and not say why.
func TestAPasswordWithoutAUserIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := Target{URL: "http://127.0.0.1:8086", Database: "field"}
	t.Setenv(PasswordVariable, "another's")
	if _, err := Open(to, "", slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("the variable alone, which may be for another server: %v", err)
	}
	if _, err := Open(to, path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--user") {
		t.Errorf("a file alone: %v", err)
	}
}

//attack:local the database's password in a file that others can read | it is not read
func TestReadPassword(t *testing.T) {
	t.Setenv(PasswordVariable, "from the environment")
	if got, err := ReadPassword(""); got != "from the environment" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	path := filepath.Join(t.TempDir(), "password")
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
		err  string
	}{
		{"hunter2\r\nignored\n", 0o600, "hunter2", ""},
		{"hunter2", 0o400, "hunter2", ""},
		{"hunter2\n", 0o644, "", "chmod 600"},
		{"\n", 0o600, "", "first line is empty"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadPassword(path)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q mode %o: %q, %v", c.text, c.mode, got, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadPassword(path); err == nil {
		t.Error("a file that is not there gives no error")
	}
}
