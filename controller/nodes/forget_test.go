package nodes

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// standIn is a node that has records of run r that nobody has collected, and captures of monday.
type standIn struct {
	refuses *wire.Error // why it keeps them; nil: it does not
	over    []string    // runs that were said to be over
}

func (s *standIn) client(t *testing.T) *fleet.Client {
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, body any) {
		data, err := wire.Encode(body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		_, _ = w.Write(data)
	}
	mux.HandleFunc("GET /v1/node", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, wire.NodeStatus{Node: "car", Spool: wire.SpoolStatus{
			Newest: wire.SpoolPosition{Epoch: "e", Seq: 7}, UnconfirmedRuns: []string{"r"}},
			CaptureRuns: []string{"monday"}})
	})
	mux.HandleFunc("POST /v1/records/confirm", func(w http.ResponseWriter, r *http.Request) {
		var c wire.Confirmation
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || !c.Over || c.Seq != 0 || c.Epoch != "e" {
			t.Errorf("confirmation %+v, %v: nothing was collected", c, err)
		}
		if s.refuses != nil {
			reply(w, http.StatusConflict, s.refuses)
			return
		}
		s.over = append(s.over, c.Run)
		reply(w, http.StatusOK, wire.SpoolStatus{})
	})
	own, controller := testnet.Identity(t, "car"), testnet.Identity(t, "desk")
	list, err := keys.NewAuthorized(keys.Peer{Name: "desk", Role: wire.RoleController, Pin: controller.Pin})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(mux)
	server.TLS = keys.ServerTLS(own, list)
	server.StartTLS()
	t.Cleanup(server.Close)
	c := fleet.NewClient(controller, fleet.Node{Name: "car", Address: server.Listener.Addr().String(), Pin: own.Pin})
	t.Cleanup(c.Close)
	return c
}

// What a run records while it is under way, its controller has yet to collect: the node refuses, and why is told.
func TestARunThatIsUnderWayIsNotForgotten(t *testing.T) {
	for _, refuses := range []*wire.Error{nil, {Code: wire.CodeBusy, Message: "run r is under way at node car",
		Cure: "wait for its end"}} {
		node := standIn{refuses: refuses}
		says := "car: drops the records of run r when it needs the room, and its captures, photos and recordings at " +
			"once\n"
		if refuses != nil {
			says = "forget run r: run r is under way at node car (busy): wait for its end\n"
		}
		var out strings.Builder
		err := Forget(t.Context(), []*fleet.Client{node.client(t)}, "r", &out)
		if forgotten := len(node.over) == 1; forgotten != (refuses == nil) || forgotten != (err == nil) ||
			!strings.Contains(out.String(), says) {
			t.Errorf("over %v, %v: %s", node.over, err, out.String())
		}
		if err != nil && !errors.Is(err, ErrNotForgotten) {
			t.Error(err)
		}
	}
}

// A node is asked to forget a run, too, of which it has no records: photos may be left of it.
func TestPhotosOfARunAreForgottenWithoutItsRecords(t *testing.T) {
	var node standIn
	var out strings.Builder
	err := Forget(t.Context(), []*fleet.Client{node.client(t)}, "s", &out)
	if !errors.Is(err, ErrNotForgotten) || len(node.over) != 1 || node.over[0] != "s" ||
		!strings.Contains(out.String(), "car: has nothing of run s that is not collected, unless photos") ||
		!strings.Contains(out.String(), "; it has records of r; it has captures of monday\n") {
		t.Errorf("over %v, %v: %s", node.over, err, out.String())
	}
}

// Captures of a run stay until their attempt is decided, also where all of its records were collected.
func TestCapturesOfARunAreForgottenWithoutItsRecords(t *testing.T) {
	var node standIn
	var out strings.Builder
	err := Forget(t.Context(), []*fleet.Client{node.client(t)}, "monday", &out)
	if want := "car: has dropped the captures of run monday, and its photos and recordings, if any were left\n"; err !=
		nil || len(node.over) != 1 || node.over[0] != "monday" || out.String() != want {
		t.Errorf("over %v, %v: %s", node.over, err, out.String())
	}
}
