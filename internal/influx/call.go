package influx

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/internal/android"
)

// statusError is an answer that is not 2xx.
type statusError struct {
	code       int
	message    string
	retryAfter time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("influxdb answers %d: %s", e.code, e.message)
}

// aboutLines: the server objects to lines of the batch, or to its size.
// 1.x says 400 to a bad line and to a field of another type; 2.x says 400 to
// the first and 422 to the second, and drops the whole batch.
func (e *statusError) aboutLines() bool {
	switch e.code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return true
	}
	return false
}

// noDatabase: 1.x says so when the database is not there.
func (e *statusError) noDatabase() bool {
	return e.code == http.StatusNotFound && strings.Contains(e.message, "database not found")
}

// passes: the same call may succeed later.
func (e *statusError) passes() bool {
	return e.code >= 500 || e.code == http.StatusTooManyRequests || e.code == http.StatusRequestTimeout
}

// passes: the server is away for the moment, or did not understand a connection.
func passes(err error) bool {
	if answer, ok := errors.AsType[*statusError](err); ok {
		return answer.passes()
	}
	_, network := errors.AsType[*networkError](err)
	return network
}

// networkError is a call that got no answer.
type networkError struct{ err error }

func (e *networkError) Error() string { return e.err.Error() }
func (e *networkError) Unwrap() error { return e.err }

// call makes one POST; body is packed, or nil.
func (w *Writer) call(ctx context.Context, path string, query url.Values, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Target.endpoint(path, query), bytes.NewReader(body))
	if err != nil {
		return errors.New("make a request for influxdb: its url is not one")
	}
	req.Header.Set("User-Agent", "fieldmesh")
	if body != nil {
		req.Header.Set("Content-Encoding", "gzip")
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	if w.Target.User != "" {
		req.SetBasicAuth(w.Target.User, w.Target.Password)
	}
	resp, err := w.client().Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // the rest repeats the address
		}
		if errors.Is(err, http.ErrSchemeMismatch) {
			return w.otherScheme("https", "http")
		}
		err = android.Explain(err)
		return &networkError{fmt.Errorf("reach %s: %w%s", w.Target.place(), err, cure(err))}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return &networkError{fmt.Errorf("read the answer of %s: %w", w.Target.place(), err)}
	}
	if resp.StatusCode/100 == 2 {
		if !bytes.Contains(text, []byte(`"error"`)) {
			return nil
		}
		return &statusError{code: http.StatusBadRequest, message: w.message(resp, text)} // of a statement
	}
	if resp.StatusCode == http.StatusBadRequest && plainToTLS.Match(text) {
		return w.otherScheme("http", "https")
	}
	return &statusError{code: resp.StatusCode, message: w.message(resp, text), retryAfter: retryAfter(resp.Header)}
}

// cure says what to look at where a server was not reached.
func cure(err error) string {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		return "; correct the name in --influx"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "; is InfluxDB running there?"
	}
	if _, other := errors.AsType[tls.RecordHeaderError](err); other {
		return "; it does not speak TLS: if that is an InfluxDB, its address begins with http://"
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return "; if that is your own authority, name the file of its certificate in the variable SSL_CERT_FILE"
	}
	return ""
}

// plainToTLS is what Go's servers, and nginx, answer to HTTP where TLS is spoken.
var plainToTLS = regexp.MustCompile(`HTTP request (was sent )?to (an )?HTTPS`)

// otherScheme is the error of an address with the wrong scheme.
func (w *Writer) otherScheme(given, spoken string) error {
	place := w.Target.place()
	return fmt.Errorf("reach %s: this server speaks %s, not %s; give its address as %s", place, spoken, given,
		spoken+strings.TrimPrefix(place, given))
}

// message is the server's reason, cut to a readable length. A server, or a
// proxy before it, may repeat what it was sent; the password is taken out.
func (w *Writer) message(resp *http.Response, body []byte) string {
	var told struct {
		Error   string `json:"error"`   // 1.x
		Message string `json:"message"` // 2.x
		Results []struct {
			Error string `json:"error"`
		} `json:"results"` // of statements
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &told) == nil && len(told.Results) > 0 {
		text = told.Results[0].Error
	} else if json.Unmarshal(body, &told) == nil && told.Error+told.Message != "" {
		text = strings.TrimSpace(told.Error + " " + told.Message)
	}
	if strings.HasPrefix(text, "<") {
		text = http.StatusText(resp.StatusCode) + ", as a web page"
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed {
			text += ": is that an InfluxDB?"
		}
	}
	if text == "" {
		text = http.StatusText(resp.StatusCode)
	}
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		text = "it redirects elsewhere; give the address that it redirects to"
	}
	if w.Target.Password != "" {
		text = strings.ReplaceAll(text, w.Target.Password, "***")
	}
	return printable(text, 400)
}

// retryAfter reads the header's form in seconds; the form of a date would need
// a clock in common with the server.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(min(s, 3600))*time.Second, serverWait)
}

// client never follows a redirect: it would carry user and password along.
func (w *Writer) client() *http.Client {
	c := http.Client{}
	if w.Client != nil {
		c = *w.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// Pack compresses lines as a request carries them.
func Pack(lines []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(lines); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
