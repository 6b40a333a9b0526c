package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// How long a call may take. A long poll takes its wait on top.
const (
	dialTime      = 3 * time.Second
	handshakeTime = 3 * time.Second
	callTime      = 10 * time.Second
	slowTime      = 70 * time.Second // a large plan over a slow link; putting a node back
	// armTime is enough for a car that comes back to its start, and for routing out there and once more at the start.
	armTime    = slowTime + (wire.ReturnS+2*wire.RoutingReadyMaxS)*time.Second
	answerMost = 256 << 20 // bytes of an answer
)

// Between the attempts at a call whose connection failed. Every call of the
// API is idempotent, so all of them may be repeated.
var retryAfter = []time.Duration{50 * time.Millisecond, 250 * time.Millisecond}

// Client calls one node's API. It may be used by several goroutines.
type Client struct {
	node      Node
	pin       string // our own
	transport *http.Transport
	clock     func() (wire.ClockReply, error) // this machine's
}

// NewClient makes a client of a node. It connects at the first call.
func NewClient(identity keys.Identity, node Node) *Client {
	return &Client{
		node:  node,
		pin:   identity.Pin,
		clock: ownClock,
		transport: &http.Transport{
			DialContext:         dialer(node.Netns),
			TLSClientConfig:     keys.ClientTLS(identity, node.Pin),
			TLSHandshakeTimeout: handshakeTime,
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true,
		},
	}
}

// Node is the entry that the client was made for.
func (c *Client) Node() Node { return c.node }

// Close closes the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// call is one call of the API.
type call struct {
	doing  string // in words, for an error
	method string
	path   string
	query  url.Values
	body   []byte
	within time.Duration
	lines  bool // the whole lines of an answer that broke off are of use
}

// answer is what came back with status 200.
type answer struct {
	header http.Header
	body   []byte
}

// do makes a call, again when its connection failed. Beside an error there is what came of an answer of lines.
func (c *Client) do(ctx context.Context, k call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, k.within)
	defer cancel()
	began := time.Now()
	for attempt := 0; ; attempt++ {
		a, err := c.once(ctx, k)
		if err == nil {
			return a, nil
		}
		a.body = a.body[:bytes.LastIndexByte(a.body, '\n')+1]
		if k.lines && len(a.body) > 0 {
			return a, c.explain(k, err, time.Since(began))
		}
		if attempt == len(retryAfter) || !isConnectionError(err) || pause.For(ctx, retryAfter[attempt]) != nil {
			return answer{}, c.explain(k, err, time.Since(began))
		}
	}
}

// once makes one attempt at a call.
func (c *Client) once(ctx context.Context, k call) (answer, error) {
	target := url.URL{Scheme: "https", Host: c.node.Address, Path: k.path, RawQuery: k.query.Encode()}
	request, err := http.NewRequestWithContext(ctx, k.method, target.String(), bytes.NewReader(k.body))
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	if k.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	return read(ctx, response)
}

// read reads an answer that came before its deadline. Beside an error there is what came of one with status 200.
func read(ctx context.Context, response *http.Response) (answer, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, answerMost+1))
	a := answer{header: response.Header, body: body}
	if response.StatusCode != http.StatusOK {
		a = answer{}
	}
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return a, err
	}
	// A node whose caller hangs up ends its answer with what it has, and that
	// may still arrive while the connection closes.
	if err := ctx.Err(); err != nil {
		return a, err
	}
	if len(body) > answerMost {
		return answer{}, fmt.Errorf("the answer exceeds %d bytes", answerMost)
	}
	if response.StatusCode != http.StatusOK {
		return answer{}, refusal(response.StatusCode, body)
	}
	return a, nil
}

// refusal reads the error that the node answered with.
func refusal(status int, body []byte) error {
	var e wire.Error
	if err := json.Unmarshal(body, &e); err != nil || e.Code == "" {
		return wire.Errorf(wire.CodeInternal, "HTTP status %d without an error body: %.200q", status, body)
	}
	return &e
}

// isConnectionError reports whether a call failed below HTTP in a way that a
// second attempt may mend at once. A time-out is not among them: it has cost
// enough already.
func isConnectionError(err error) bool {
	for _, cause := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF,
		io.ErrUnexpectedEOF} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// callInto makes a call and decodes its answer. Names that this version does
// not know are passed over: the node may be newer.
func callInto[T any](ctx context.Context, c *Client, k call) (T, error) {
	var out T
	a, err := c.do(ctx, k)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		return out, c.explain(k, fmt.Errorf("decode answer: %w", err), 0)
	}
	return out, nil
}

// send is callInto with a body.
func send[T any](ctx context.Context, c *Client, k call, body any) (T, error) {
	data, err := wire.Encode(body)
	if err != nil {
		var none T
		return none, c.explain(k, err, 0)
	}
	k.body = data
	return callInto[T](ctx, c, k)
}

// Status asks what the node is, can and has.
func (c *Client) Status(ctx context.Context) (wire.NodeStatus, error) {
	return callInto[wire.NodeStatus](ctx, c, call{doing: "ask status", method: http.MethodGet, path: "/v1/node",
		within: callTime})
}

// scanTime is what a radio that listens on a channel takes beyond an answer.
const scanTime = 5 * time.Second

// Scan has the node's radio listen on a channel for others, who are in its
// status from then on.
func (c *Client) Scan(ctx context.Context, channel int) error {
	query := url.Values{"scan": {strconv.Itoa(channel)}}
	_, err := callInto[wire.NodeStatus](ctx, c, call{doing: fmt.Sprintf("scan channel %d", channel),
		method: http.MethodGet, path: "/v1/node", query: query, within: callTime + scanTime})
	return err
}

// tryTime is what the traffic generator may take beyond an answer.
const tryTime = wire.GeneratorTryMaxS * time.Second

// TryGenerator is Status after the node has had its traffic generator send to
// itself.
func (c *Client) TryGenerator(ctx context.Context) (wire.NodeStatus, error) {
	query := url.Values{"generator": {"1"}}
	return callInto[wire.NodeStatus](ctx, c, call{doing: "try its iperf3", method: http.MethodGet, path: "/v1/node",
		query: query, within: callTime + tryTime})
}

// Ways is Status after a look at what leads packets to other nodes elsewhere than
// to the interface under test. mesh is the node's own address in the mesh, with its
// prefix length, and those of the others, with commas between.
func (c *Client) Ways(ctx context.Context, mesh string) (wire.NodeStatus, error) {
	return callInto[wire.NodeStatus](ctx, c, call{doing: "look at its routes", method: http.MethodGet,
		path: "/v1/node", query: url.Values{"mesh": {mesh}}, within: callTime})
}

// Clock asks for the node's clocks.
func (c *Client) Clock(ctx context.Context) (wire.ClockReply, error) {
	return callInto[wire.ClockReply](ctx, c, clockCall)
}

// Lease takes, renews or, with a TTL of 0, gives up the node's lease.
func (c *Client) Lease(ctx context.Context, l wire.Lease) (wire.Lease, error) {
	return send[wire.Lease](ctx, c, call{doing: "take lease", method: http.MethodPut, path: "/v1/lease",
		within: callTime}, l)
}

// Load pushes a run's plan.
func (c *Client) Load(ctx context.Context, plan wire.RunPlan) (wire.CampaignView, error) {
	k := call{doing: fmt.Sprintf("load run %q", plan.Run), method: http.MethodPut, path: "/v1/runs/" + plan.Run,
		within: slowTime}
	return send[wire.CampaignView](ctx, c, k, plan)
}

// View returns the node's view of a run. With a wait (at most 30 s) it first
// waits, at most so long, until the view's version is not known.
func (c *Client) View(ctx context.Context, run string, known uint64, wait time.Duration) (wire.CampaignView, error) {
	query := url.Values{}
	if wait > 0 {
		query.Set("known", strconv.FormatUint(known, 10))
		query.Set("wait_ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	k := call{doing: fmt.Sprintf("view run %q", run), method: http.MethodGet, path: "/v1/runs/" + run, query: query,
		within: wait + callTime}
	return callInto[wire.CampaignView](ctx, c, k)
}

// Arm arms the node for one attempt.
func (c *Client) Arm(ctx context.Context, run string, key wire.TrialKey) (wire.CampaignView, error) {
	k := call{doing: fmt.Sprintf("arm trial %d, attempt %d of run %q", key.Trial, key.Attempt, run),
		method: http.MethodPost, path: "/v1/runs/" + run + "/arm", within: armTime}
	return send[wire.CampaignView](ctx, c, k, key)
}

// Abort ends an attempt.
func (c *Client) Abort(ctx context.Context, run string, r wire.AbortRequest) (wire.CampaignView, error) {
	k := call{doing: fmt.Sprintf("abort trial %d, attempt %d of run %q", r.Trial, r.Attempt, run),
		method: http.MethodPost, path: "/v1/runs/" + run + "/abort", within: slowTime}
	return send[wire.CampaignView](ctx, c, k, r)
}

// Verdicts tells the node the outcomes known so far.
func (c *Client) Verdicts(ctx context.Context, run string, v []wire.Verdict) (wire.CampaignView, error) {
	k := call{doing: fmt.Sprintf("tell the verdicts of run %q", run), method: http.MethodPut, path: "/v1/runs/" + run +
		"/verdicts", within: callTime}
	return send[wire.CampaignView](ctx, c, k, v)
}

// End ends a run: the node puts everything back.
func (c *Client) End(ctx context.Context, run string) (wire.RestoreReport, error) {
	k := call{doing: fmt.Sprintf("end run %q", run), method: http.MethodPost, path: "/v1/runs/" + run + "/end",
		within: slowTime}
	return callInto[wire.RestoreReport](ctx, c, k)
}

// Restore puts everything back on the node, whatever it is doing.
func (c *Client) Restore(ctx context.Context) (wire.RestoreReport, error) {
	return callInto[wire.RestoreReport](ctx, c, call{doing: "restore", method: http.MethodPost, path: "/v1/restore",
		within: slowTime})
}

// RestoreAll tells nodes at once to restore themselves, and returns what each has
// reported, or why it has not.
func RestoreAll(ctx context.Context, clients []*Client) (reports []wire.RestoreReport, errs []error) {
	reports, errs = make([]wire.RestoreReport, len(clients)), make([]error, len(clients))
	var asked sync.WaitGroup
	for i, c := range clients {
		asked.Go(func() { reports[i], errs[i] = c.Restore(ctx) })
	}
	asked.Wait()
	return reports, errs
}

// LetIn tells the node which apps to let in, all of them.
func (c *Client) LetIn(ctx context.Context, apps wire.Apps) (wire.Apps, error) {
	return send[wire.Apps](ctx, c, call{doing: "tell which apps to let in", method: http.MethodPut, path: "/v1/apps",
		within: callTime}, apps)
}

// Records reads up to limit (0: the node's choice) durable records after a
// sequence number of an epoch, one JSON object each without newline. With
// nothing there it waits, at most so long (30 s at most). When the node's
// epoch is another one than asked for, the answer starts from that epoch's
// beginning: compare. Of an answer that broke off, the records that came whole are
// given beside the error.
func (c *Client) Records(ctx context.Context, epoch string, after uint64, limit int,
	wait time.Duration) (lines [][]byte, newEpoch string, last uint64, err error) {
	query := url.Values{"after": {strconv.FormatUint(after, 10)}}
	if epoch != "" {
		query.Set("epoch", epoch)
	} else {
		query.Set("after", "0") // a number means nothing without its epoch
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if wait > 0 {
		query.Set("wait_ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	k := call{doing: fmt.Sprintf("read records after %d", after), method: http.MethodGet, path: "/v1/records",
		query: query, within: wait + slowTime, lines: true}
	a, broke := c.do(ctx, k)
	if broke != nil && len(a.body) == 0 {
		return nil, "", 0, broke
	}
	newEpoch = a.header.Get("Fieldmesh-Epoch")
	last, err = strconv.ParseUint(a.header.Get("Fieldmesh-Last"), 10, 64)
	if err != nil || newEpoch == "" {
		return nil, "", 0, c.explain(k, fmt.Errorf("the answer's headers name epoch %q and last record %q", newEpoch,
			a.header.Get("Fieldmesh-Last")), 0)
	}
	for line := range bytes.Lines(a.body) {
		lines = append(lines, bytes.TrimSuffix(line, []byte("\n")))
	}
	if broke != nil {
		lines, last = upToLast(lines, newEpoch, after)
	}
	return lines, newEpoch, last, broke
}

// upToLast are the lines up to the last that tells its number in the epoch, and this number: of an answer that broke
// off, its header names one that did not come.
func upToLast(lines [][]byte, epoch string, after uint64) (known [][]byte, last uint64) {
	for i := len(lines); i > 0; i-- {
		var h wire.Header
		if json.Unmarshal(lines[i-1], &h) == nil && h.Epoch == epoch && h.Seq > 0 {
			return lines[:i], h.Seq
		}
	}
	return nil, after
}

// Capture reads at most limit bytes of an attempt's packet capture from an
// offset on, and the capture's size.
func (c *Client) Capture(ctx context.Context, run string, key wire.TrialKey, offset int64, limit int) (data []byte,
	size int64, err error) {
	query := url.Values{"trial": {strconv.Itoa(key.Trial)}, "attempt": {strconv.Itoa(key.Attempt)},
		"offset": {strconv.FormatInt(offset, 10)}, "bytes": {strconv.Itoa(limit)}}
	k := call{doing: fmt.Sprintf("read capture of trial %d, attempt %d", key.Trial, key.Attempt),
		method: http.MethodGet, path: "/v1/runs/" + run + "/capture", query: query, within: slowTime}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, 0, err
	}
	if size, err = strconv.ParseInt(a.header.Get("Fieldmesh-Size"), 10, 64); err != nil {
		return nil, 0, c.explain(k, fmt.Errorf("the answer's header names size %q", a.header.Get("Fieldmesh-Size")), 0)
	}
	return a.body, size, nil
}

// Attachment asks how much of a note's photo or recording the node has.
func (c *Client) Attachment(ctx context.Context, sha256 string) (wire.AttachmentHeld, error) {
	return callInto[wire.AttachmentHeld](ctx, c, call{doing: "ask for attachment " + sha256, method: http.MethodGet,
		path: "/v1/attachments", query: url.Values{"sha256": {sha256}}, within: callTime})
}

// AttachmentData reads at most limit bytes of one that is whole, from an offset on.
func (c *Client) AttachmentData(ctx context.Context, sha256 string, offset int64, limit int) ([]byte, error) {
	query := url.Values{"sha256": {sha256}, "offset": {strconv.FormatInt(offset, 10)}, "bytes": {strconv.Itoa(limit)}}
	a, err := c.do(ctx, call{doing: "read attachment " + sha256, method: http.MethodGet, path: "/v1/attachments/data",
		query: query, within: slowTime})
	return a.body, err
}

// Archived tells the node that an archive has a photo or recording.
func (c *Client) Archived(ctx context.Context, sha256 string) (wire.AttachmentHeld, error) {
	return send[wire.AttachmentHeld](ctx, c, call{doing: "let attachment " + sha256 + " go", method: http.MethodPost,
		path: "/v1/attachments/archived", within: callTime}, wire.AttachmentName{SHA256: sha256})
}

// Confirm tells the node which records of a run are safe elsewhere.
func (c *Client) Confirm(ctx context.Context, p wire.Confirmation) (wire.SpoolStatus, error) {
	k := call{doing: fmt.Sprintf("confirm records of run %s up to %d", p.Run, p.Seq), method: http.MethodPost,
		path: "/v1/records/confirm", within: callTime}
	if p.Over && p.Seq == 0 {
		k.doing = "forget run " + p.Run
	}
	return send[wire.SpoolStatus](ctx, c, k, p)
}
