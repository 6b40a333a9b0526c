package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What nodes did alone is judged when they are pulled, and nothing is driven.
func TestAPullJudgesAndDrivesNothing(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 2, 1, lane)
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, n := range field.nodes {
		n.record(wire.TrialKey{}, &wire.Event{Level: "info", Text: "before the run"}) // which Begin passes over
	}
	field.armed = func() { t.Errorf("armed for %+v", field.nodes["car"].current) }
	made := false
	field.loaded = func() {
		if made {
			return
		}
		made = true
		for _, n := range field.nodes {
			n.record(k, &wire.Window{OpenBootNs: 5, CloseBootNs: 6})
			n.record(k, &wire.TrialState{State: wire.StateKept, Outcome: wire.Accepted})
			n.keep(wire.Verdict{TrialKey: k, Outcome: wire.Accepted})
		}
	}
	found, err := r.Pull(within(t), time.Second)
	if err != nil || !found.Whole() {
		t.Fatalf("found %+v, %v", found, err)
	}
	if vs := r.Archive.Decisions(); len(vs) != 1 || vs[0].TrialKey != k || vs[0].Outcome != wire.Accepted {
		t.Errorf("decided %+v", vs)
	}
	for name, n := range field.nodes {
		if n.lease.TTLS != 0 {
			t.Errorf("node %s is left with the lease %+v", name, n.lease)
		}
	}
}

// A run that a person ends keeps what people have decided until then.
func TestARunThatIsEndedKeepsWhatWasDecided(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 2, 1, lane)
	r.lookEvery = time.Hour // nobody notices that the second trial will not end
	ctx, end := context.WithCancelCause(within(t))
	ended := errors.New("somebody pressed Ctrl-C")
	car, first := field.nodes["car"], wire.TrialKey{Trial: 1, Attempt: 1}
	field.armed = func() {
		if car.current.Trial == 2 {
			car.record(first, &wire.Noted{ID: "a", Note: "repeat", By: "phone"})
			field.mute = "road" // so that it does not end
			time.AfterFunc(500*time.Millisecond, func() { end(ended) })
		}
	}
	if err := r.Run(ctx); !errors.Is(err, ended) {
		t.Fatalf("the run ended with %v", err)
	}
	vs := r.Archive.Decisions()
	if len(vs) == 0 || vs[0].TrialKey != first || vs[0].Word == nil || vs[0].Word.Decision != "repeat" {
		t.Errorf("decided %+v", vs)
	}
}

// notes has a phone note that it took a photo.
func (n *fakeNode) notes(photo []byte) wire.Attachment {
	sum := sha256.Sum256(photo)
	a := wire.Attachment{MediaType: "image/jpeg", Bytes: len(photo), SHA256: hex.EncodeToString(sum[:])}
	n.record(wire.TrialKey{}, &wire.Noted{ID: "p", Note: "mark", Text: "bus", By: "phone", Attachment: &a})
	return a
}

// The run is finished without its photo, which comes when one node holds another run and the other is off.
func TestAPhotoIsFetchedIntoAFinishedRun(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 1, 1, lane)
	car, road, photo := field.nodes["car"], field.nodes["road"], []byte("a bus")
	var a wire.Attachment
	field.armed = func() { a = car.notes(photo) }
	if err := errors.Join(r.Run(within(t)), r.Archive.Finish(), r.Attachments(within(t))); err != nil {
		t.Fatal(err)
	}
	if car.askedPhoto == 0 || !r.Archive.Finished() {
		t.Errorf("asked %d times, finished %v", car.askedPhoto, r.Archive.Finished())
	}
	car.photo, car.holds, road.away = photo, "tomorrow", true
	before := road.askedPhoto
	found, err := r.Pull(within(t), 0)
	if err != nil || found.Away["road"] == nil || found.Other["car"] != "tomorrow" || road.askedPhoto != before {
		t.Errorf("found %+v, %v; the node that is off was asked %d times", found, err, road.askedPhoto-before)
	}
	got, err := os.ReadFile(filepath.Join(r.Archive.Dir(), a.Path()))
	if err != nil || !bytes.Equal(got, photo) || !r.Archive.Finished() {
		t.Errorf("the archive has %q, %v; finished: %v", got, err, r.Archive.Finished())
	}
}

// A photo would be measured where the mesh carries control and nodes go on by themselves.
func TestAPullLeavesPhotosOnAMeshThatIsMeasured(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newRunner(t, 1, 1, lane)
	r.Plan.Control = wire.ControlMesh
	car := field.nodes["car"]
	car.photo = []byte("a bus")
	field.loaded = func() { car.notes(car.photo) }
	if found, err := r.Pull(within(t), time.Second); err != nil || !found.Whole() || car.askedPhoto != 0 {
		t.Errorf("found %+v, %v; asked %d times", found, err, car.askedPhoto)
	}
}

// What a node records while it holds another shard is that shard's controller's, who may not have it yet.
func TestAPullReadsNothingOfAnotherShard(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newShardRunner(t, &wire.Shard{Number: 1, Of: 2}, 2, 1, lane)
	car, road := field.nodes["car"], field.nodes["road"]
	car.shard, road.shard = &wire.Shard{Number: 2, Of: 2}, &wire.Shard{Number: 1, Of: 2}
	for _, n := range field.nodes {
		n.record(wire.TrialKey{Trial: 1, Attempt: 1}, &wire.Window{OpenBootNs: 5, CloseBootNs: 6})
	}
	found, err := r.Pull(within(t), time.Second)
	if err != nil || found.Whole() || found.Shard["car"] == nil || found.Shard["road"] != nil ||
		!strings.Contains(found.Missing(), "car holds shard 2/2 of the run") {
		t.Errorf("found %+v, %v: %s", found, err, found.Missing())
	}
	if at := r.Archive.Cursor("car"); at.Seq != 0 || car.confirmed.Run != "" {
		t.Errorf("it was read to %+v, and told %+v", at, car.confirmed)
	}
	if at := r.Archive.Cursor("road"); at.Seq == 0 || road.confirmed.Run == "" {
		t.Errorf("the other was read to %+v, and told %+v", at, road.confirmed)
	}
}

// Of a node that holds another run by now, a shard may collect what the other shard's controller lacks: it passes that
// over, and the node is to keep it.
func TestAPullConfirmsNothingOfAnotherShard(t *testing.T) {
	lane, field := newLane(t, "only")
	r := newShardRunner(t, &wire.Shard{Number: 1, Of: 2}, 2, 1, lane)
	car, road := field.nodes["car"], field.nodes["road"]
	for _, n := range field.nodes {
		n.holds = "tomorrow"
		n.record(wire.TrialKey{Trial: 1, Attempt: 1}, &wire.Window{OpenBootNs: 5, CloseBootNs: 6})
	}
	car.record(wire.TrialKey{Trial: 2, Attempt: 1}, &wire.Window{OpenBootNs: 7, CloseBootNs: 8})
	if found, err := r.Pull(within(t), time.Second); err != nil || len(found.Other) != 2 {
		t.Fatalf("found %+v, %v", found, err)
	}
	if car.confirmed.Run != "" || !r.Archive.PassedOver("car") {
		t.Errorf("the car was told %+v", car.confirmed)
	}
	if road.confirmed.Run == "" || r.Archive.PassedOver("road") {
		t.Errorf("the other was told %+v", road.confirmed)
	}
}
