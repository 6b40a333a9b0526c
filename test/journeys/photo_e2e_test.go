//go:build e2e

package journeys

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// passenger is an app that a node lets in.
type passenger struct {
	http *http.Client
	base string
}

func (d *desk) passenger(t *testing.T, node string) *passenger {
	t.Helper()
	identity := testnet.Identity(t, "phone")
	apps := wire.Apps{Apps: []wire.App{{Name: "phone", Pin: identity.Pin}}}
	if _, err := d.client(t, node).LetIn(t.Context(), apps); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: keys.ClientTLS(identity, d.fleet.Nodes[node].Pin),
		DialContext: func(_ context.Context, network, address string) (conn net.Conn, err error) {
			d.nodes[node].Do(t, func() error { conn, err = net.Dial(network, address); return nil })
			return conn, err
		}}
	t.Cleanup(transport.CloseIdleConnections)
	return &passenger{&http.Client{Transport: transport, Timeout: 10 * time.Second}, "https://" + d.address(node)}
}

// call makes a call of the node, whose refusal is a *wire.Error.
func (p *passenger) call(method, path string, body io.Reader, answer any) error {
	r, err := http.NewRequest(method, p.base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		refused := &wire.Error{}
		return errors.Join(json.NewDecoder(got.Body).Decode(refused), refused)
	}
	return json.NewDecoder(got.Body).Decode(answer)
}

func (p *passenger) held(sha string) (h wire.AttachmentHeld, err error) {
	err = p.call("GET", "/v1/attachments?sha256="+sha, nil, &h)
	return h, err
}

func (p *passenger) put(piece string, h *wire.AttachmentHeld) error {
	return p.call("PUT", "/v1/attachments", strings.NewReader(piece), h)
}

// late gives the node a photo, and its note, after the run.
func (p *passenger) late(t *testing.T, run string) wire.Attachment {
	t.Helper()
	sum := sha256.Sum256([]byte("late"))
	a := wire.Attachment{MediaType: "image/jpeg", Bytes: len("late"), SHA256: hex.EncodeToString(sum[:])}
	note := wire.Note{ID: "photo-2", Note: "mark", Text: "the way home", Run: run, Attachment: &a}
	err := p.call("POST", "/v1/notes", strings.NewReader(testnet.JSON(t, note)), new(wire.SpoolPosition))
	var h wire.AttachmentHeld
	err = errors.Join(err, p.put(pieceOf(t, a.SHA256, []byte("late"), 0), &h))
	if err != nil || h.HeldBytes != h.Bytes {
		t.Fatalf("a photo after the run: %+v, %v", h, err)
	}
	return a
}

func pieceOf(t *testing.T, sha string, data []byte, offset int) string {
	t.Helper()
	end := min(offset+wire.AttachmentPiece, len(data))
	return testnet.JSON(t, wire.AttachmentPut{SHA256: sha, Offset: offset,
		Data: base64.StdEncoding.EncodeToString(data[offset:end])})
}

func isBusy(err error) bool {
	var refused *wire.Error
	return errors.As(err, &refused) && refused.Code == wire.CodeBusy
}

// The passenger takes a photo while a trial is armed. Its note is recorded at once; the photo itself comes between
// trials, over a connection that breaks in the middle, and from the node into the run's folder.
//
//attack:phone a photo that is sent beside a trial, and would be measured | the node refuses it until the trial has
//attack:and ended
func TestAPhotoReachesTheArchive(t *testing.T) {
	d := newDesk(t, "")
	p := d.passenger(t, "alpha")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source, photo := rand.New(rand.NewPCG(seed, 0)), make([]byte, 150_000)
	for i := range photo {
		photo[i] = byte(source.Uint32())
	}
	sum := sha256.Sum256(photo)
	a := wire.Attachment{MediaType: "image/jpeg", Bytes: len(photo), SHA256: hex.EncodeToString(sum[:])}
	c := d.start(t, stationary(t, "photographed", "[16.7]"))
	noted, broken, done := false, false, false
	c.steps = func(step string, k wire.TrialKey) {
		switch {
		case step == "armed" && !noted:
			noted = true
			var at wire.SpoolPosition
			note := wire.Note{ID: "photo-1", Note: "mark", Text: "the antenna", Run: c.name, Trial: k.Trial,
				Attempt: k.Attempt, Attachment: &a}
			err := p.call("POST", "/v1/notes", strings.NewReader(testnet.JSON(t, note)), &at)
			if err != nil {
				t.Errorf("the note: %v", err)
			}
			if _, err := p.held(a.SHA256); !isBusy(err) {
				t.Errorf("asked while a trial is armed, the node says %v", err)
			}
			err = p.put(pieceOf(t, a.SHA256, photo, 0), new(wire.AttachmentHeld))
			if !isBusy(err) {
				t.Errorf("sent while a trial is armed, the node says %v", err)
			}
		case step == "kept" && noted && !done:
			for {
				h, err := p.held(a.SHA256)
				if err == nil && h.HeldBytes > 0 && !broken {
					broken = true
					text := pieceOf(t, a.SHA256, photo, h.HeldBytes)
					cut := io.MultiReader(strings.NewReader(text[:len(text)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
					held := h.HeldBytes
					if p.call("PUT", "/v1/attachments", cut, &h) == nil {
						t.Error("half of a piece is taken")
					}
					if h, err := p.held(a.SHA256); err == nil && h.HeldBytes != held {
						t.Errorf("after half of a piece, %d bytes are held, and were %d", h.HeldBytes, held)
					}
					continue
				}
				if err == nil && h.HeldBytes < len(photo) {
					err = p.put(pieceOf(t, a.SHA256, photo, h.HeldBytes), &h)
				}
				if isBusy(err) {
					return // the next trial is armed already
				}
				if err != nil {
					t.Errorf("send the photo: %v", err)
					return
				}
				if done = h.HeldBytes == len(photo); done {
					return
				}
			}
		}
	}
	k := c.finish(t, 10*time.Minute)
	if !noted || !broken || !done {
		t.Fatalf("noted %v, broken %v, sent %v", noted, broken, done)
	}
	k.nothingLost(t, deskNodes...)
	got, err := os.ReadFile(filepath.Join(c.runDir(), "attachments", a.SHA256+".jpg"))
	if err != nil || !bytes.Equal(got, photo) {
		t.Errorf("the archive has %d bytes: %v", len(got), err)
	}
	if h, err := p.held(a.SHA256); err != nil || !h.Archived || h.HeldBytes != 0 {
		t.Errorf("the node keeps what the archive has: %+v, %v", h, err)
	}
	late := p.late(t, c.name)
	fieldmesh(t, "pull", c.runDir(), "--fleet", d.fleetFile())
	fieldmesh(t, "verify", c.runDir())
	fieldmesh(t, "report", c.runDir())
	if got, err := os.ReadFile(filepath.Join(c.runDir(), late.Path())); err != nil || string(got) != "late" {
		t.Errorf("of a photo that came after the run, the archive has %q: %v", got, err)
	}
	page, err := os.ReadFile(filepath.Join(c.runDir(), "report.html"))
	if err != nil || !bytes.Contains(page, []byte(`<img src="attachments/`+a.SHA256+`.jpg"`)) {
		t.Errorf("the report does not show the photo: %v", err)
	}
	d.restored(t)
}
