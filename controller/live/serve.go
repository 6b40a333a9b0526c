package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/door"
	"fieldmesh.dev/fieldmesh/internal/keys"
)

//go:embed page
var page embed.FS

// keepAlive is sent when nothing changes, so that a page whose server is gone
// notices it, and a server whose page is gone ends.
const keepAlive = 5 * time.Second

// writeLimit ends a viewer that takes nothing.
const writeLimit = 10 * time.Second

// viewersMax bounds how many are sent what happens.
const viewersMax = 64

// strangersMax bounds how many without the token are connected: one more takes the place of one of them, and none of a
// viewer, who has some six connections (what browsers open to a host).
const strangersMax = 256

const tokenBytes = 16

// tokens are as Token writes them.
var tokens = regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`)

// Token returns the secret that viewers beyond this machine need, 128 bits; "" where an address is for this machine
// only. It is kept beside the runs, so that a page that is open somewhere goes on when a run of theirs is served again.
// With an error it is a token that is not kept.
func Token(listen, runs string) (string, error) {
	if Loopback(listen) {
		return "", nil
	}
	file := filepath.Join(runs, ".keys", "live.token")
	held, err := os.ReadFile(file)
	if token := strings.TrimSpace(string(held)); err == nil && tokens.MatchString(token) {
		return token, nil
	}
	raw := make([]byte, tokenBytes)
	_, _ = rand.Read(raw) // it never fails: crypto/rand ends the program instead
	token := base64.RawURLEncoding.EncodeToString(raw)
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		err = keys.WriteFile(file, []byte(token+"\n"), 0o600)
	}
	if err != nil {
		err = fmt.Errorf("keep the live page's token, so that its address stays the same: %w", err)
	}
	return token, err
}

// Loopback reports whether only this machine reaches an address "host:port".
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Addresses are where a browser finds the page: beyond this machine, those of
// its interfaces when it listens on all of them.
func Addresses(at net.Addr, token string) (urls []string) {
	tail := "/"
	if token != "" {
		tail += "?token=" + token
	}
	bound := at.(*net.TCPAddr).AddrPort()
	if !bound.Addr().IsUnspecified() {
		return []string{"http://" + bound.String() + tail}
	}
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		ip, perr := netip.ParsePrefix(a.String())
		if err == nil && perr == nil && ip.Addr().IsGlobalUnicast() && (ip.Addr().Is4() || !bound.Addr().Is4()) {
			urls = append(urls, "http://"+netip.AddrPortFrom(ip.Addr(), bound.Port()).String()+tail)
		}
	}
	if len(urls) == 0 { // no interface has an address yet
		urls = []string{fmt.Sprintf("http://127.0.0.1:%d%s", bound.Port(), tail)}
	}
	return urls
}

// Serve serves the page until ctx ends.
func Serve(ctx context.Context, l net.Listener, b *Board, token string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	crowd := door.NewCrowd(l, strangersMax)
	h, err := handler(ctx, b, token, crowd.Know)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	followed := make(chan struct{})
	go func() { defer close(followed); b.Follow(ctx) }()
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10}
	ended := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer ended()
	err = s.Serve(crowd)
	stop()
	<-followed
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the live page: %w", err)
}

// handler serves the page and its events. With a token every request must
// bring it, as ?token=…; without one, only requests by this machine's own
// names are answered, so that no page from elsewhere reads along by a name
// that it points here. Known is told the remote address of whose request may be answered.
func handler(ctx context.Context, b *Board, token string, known func(remote string)) (http.Handler, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, fmt.Errorf("open the live page: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	seats := make(chan struct{}, viewersMax)
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		select {
		case seats <- struct{}{}:
			defer func() { <-seats }()
		default:
			http.Error(w, "too many viewers", http.StatusServiceUnavailable)
			return
		}
		b.stream(ctx, w, r)
	})
	mux.HandleFunc("GET /attempt", newShelf().serve(b.dir))
	a := newAtlas(b.dir)
	mux.HandleFunc("GET /streets", a.draw)
	mux.HandleFunc("GET /picture", a.picture)
	return guard(mux, token, known), nil
}

func guard(next http.Handler, token string, known func(remote string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self'; img-src 'self' data:; "+
			"frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		refused := ""
		switch {
		case token == "" && !Loopback(withPort(r.Host)):
			refused = "this page is for this machine only; open it as http://127.0.0.1"
		case token == "" || brought(r, token):
			known(r.RemoteAddr)
		case path.Ext(r.URL.Path) != ".js" && path.Ext(r.URL.Path) != ".css": // which are no secret
			refused = "the address lacks the token that `fieldmesh live` printed"
		}
		if refused != "" {
			h.Set("Connection", "close")
			http.Error(w, refused, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// brought reports whether the token came with the address.
func brought(r *http.Request, token string) bool {
	return subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(token)) == 1
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, "80")
}

// stream sends the state, whenever it changes, as server-sent events until the
// viewer or the server goes.
func (b *Board) stream(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	var sent view
	for {
		v, changed := b.now()
		if err := send(w, c, v, sent); err != nil {
			return // the viewer is gone
		}
		sent = v
		t := time.NewTimer(keepAlive)
		select {
		case <-changed:
		case <-t.C:
		case <-r.Context().Done():
		case <-ctx.Done():
		}
		t.Stop()
		if r.Context().Err() != nil || ctx.Err() != nil {
			return
		}
	}
}

// Status goes to viewers with every state, and alone while nothing changes.
type Status struct {
	Failure string `json:"failure,omitempty"` // why the archive cannot be read
	AgeMs   *int64 `json:"age_ms,omitempty"`  // of the newest record, by the clock of the controller's machine
}

// send tells a viewer what it was not sent before.
func send(w io.Writer, c *http.ResponseController, v, sent view) error {
	if err := c.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	for _, e := range []struct {
		name      string
		text, had []byte
	}{{"state", v.state, sent.state}, {"results", v.results, sent.results}} {
		if e.text == nil || bytes.Equal(e.text, e.had) {
			continue
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, e.text); err != nil {
			return err
		}
	}
	s := Status{Failure: v.failure}
	if !v.written.IsZero() {
		s.AgeMs = new(max(time.Since(v.written), 0).Milliseconds())
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: status\ndata: %s\n\n", text); err != nil {
		return err
	}
	return c.Flush()
}
