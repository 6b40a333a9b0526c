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

// standIn is a node that holds a run of which it has records that nobody has collected.
type standIn struct {
	held   string
	leased bool
	view   wire.CampaignView
	over   []string // runs that were said to be over
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
		reply(w, http.StatusOK, wire.NodeStatus{Node: "car", Run: s.held,
			Spool: wire.SpoolStatus{UnconfirmedRuns: []string{"r"}}})
	})
	mux.HandleFunc("PUT /v1/lease", func(w http.ResponseWriter, r *http.Request) {
		var l wire.Lease
		if err := json.NewDecoder(r.Body).Decode(&l); err != nil || l.TTLS != 0 {
			t.Errorf("lease %+v, %v: none is to be taken", l, err)
		}
		if s.leased {
			reply(w, http.StatusConflict, wire.Error{Code: wire.CodeLeaseHeld, Message: "node car is steered by desk"})
			return
		}
		reply(w, http.StatusOK, wire.Lease{Holder: l.Holder})
	})
	mux.HandleFunc("GET /v1/runs/r", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.view) })
	mux.HandleFunc("POST /v1/records/confirm", func(w http.ResponseWriter, r *http.Request) {
		var c wire.Confirmation
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || !c.Over {
			t.Errorf("confirmation %+v, %v", c, err)
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

// What a run records while it is under way, its controller has yet to collect.
func TestARunThatIsUnderWayIsNotForgotten(t *testing.T) {
	current := &wire.TrialKey{Trial: 2, Attempt: 1}
	for name, c := range map[string]struct {
		node standIn
		says string // "": it is forgotten
	}{
		"steered": {standIn{held: "r", leased: true}, "run r is under way: node car is steered by desk; " +
			"wait for its end; or stop its controller, then `fieldmesh nodes restore car`"},
		"alone, in an attempt": {
			standIn{held: "r", view: wire.CampaignView{Current: current, State: wire.StateRunning}},
			"trial 2, attempt 1 is running; wait"},
		"alone, being armed": {
			standIn{held: "r", view: wire.CampaignView{Current: current, State: wire.StateLoaded}},
			"trial 2, attempt 1 is loaded; wait"},
		"alone, between": {
			standIn{held: "r", view: wire.CampaignView{Current: current, State: wire.StateKept}}, ""},
		"before any":         {standIn{held: "r", view: wire.CampaignView{State: wire.StateLoaded}}, ""},
		"steered in another": {standIn{held: "s", leased: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := Forget(t.Context(), []*fleet.Client{c.node.client(t)}, "r", &out)
			forgotten := len(c.node.over) == 1
			if forgotten != (c.says == "") || forgotten != (err == nil) || !strings.Contains(out.String(), c.says) {
				t.Errorf("over %v, %v: %s", c.node.over, err, out.String())
			}
			if !forgotten && !errors.Is(err, ErrNotForgotten) {
				t.Error(err)
			}
		})
	}
}
