package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// standIn issues a node in $WORK/fleet and serves its API until the script
// ends: `agent NAME well|sick|swapped|gone`. A swapped one has another key than
// the issued one, a gone one does not answer.
func standIn(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: agent NAME well|sick|swapped|gone")
	}
	name, state := args[0], args[1]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	bundle, err := fleet.Issue(filepath.Join(ts.Getenv("WORK"), "fleet"), name, listener.Addr().String(),
		fleet.IssueOptions{Unit: "laptop-1"})
	ts.Check(err)
	if state == "gone" {
		ts.Check(listener.Close())
		return
	}
	identity, err := keys.LoadIdentity(bundle)
	ts.Check(err)
	if state == "swapped" {
		certPEM, keyPEM, _, err := keys.New(name)
		ts.Check(err)
		identity, err = keys.ParseIdentity(certPEM, keyPEM)
		ts.Check(err)
	}
	authorized, err := keys.LoadAuthorized(filepath.Join(bundle, "authorized.json"))
	ts.Check(err)
	server := &http.Server{Handler: standInAPI(name, state), TLSConfig: keys.ServerTLS(identity, authorized),
		ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	ts.Defer(func() {
		server.Close()
		<-served
	})
}

// standInAPI answers from the golden files. Its wall clock is 5 s fast.
func standInAPI(name, state string) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, body any) {
		data, err := wire.Encode(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Write(data)
	}
	mux.HandleFunc("GET /v1/node", func(w http.ResponseWriter, _ *http.Request) {
		up, rate := true, 10.0
		s := wire.NodeStatus{
			Node: name, Version: "0.1.0", Kernel: "6.1.0-28-amd64", Arch: "amd64", Interface: "wlan0", InterfaceUp: &up,
			GPS: &wire.GPS{Mode: 3, Connected: true}, GPSRateHz: &rate,
			Spool: wire.SpoolStatus{FreeBytes: 51539607552, UnconfirmedRuns: []string{"yesterday"}},
			Host:  wire.HostStatus{Reached: true, Pending: []string{"address"}},
		}
		if state == "sick" {
			s.InterfaceUp, s.GPS, s.Host = nil, nil, wire.HostStatus{}
			s.Problems = []wire.Problem{{Need: "gps", Found: "gpsd is not running", Cure: "start gpsd"},
				{Need: "host", Found: "no answer", Cure: "start the host process"}}
		}
		answer(w, s)
	})
	mux.HandleFunc("POST /v1/restore", func(w http.ResponseWriter, _ *http.Request) {
		if state == "sick" {
			answer(w, wire.RestoreReport{Undone: []string{},
				Failed: []string{"address 10.0.0.1/24 on wlan0: no such device"}})
			return
		}
		answer(w, wire.RestoreReport{Undone: []string{"address 10.0.0.1/24 on wlan0"}, Failed: []string{}})
	})
	mux.HandleFunc("POST /v1/records/confirm", func(w http.ResponseWriter, r *http.Request) {
		var c wire.Confirmation
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || !strings.HasPrefix(c.Run, "yester") || !c.Over {
			http.Error(w, fmt.Sprintf("%+v: %v", c, err), http.StatusBadRequest)
			return
		}
		answer(w, wire.SpoolStatus{})
	})
	mux.HandleFunc("GET /v1/clock", func(w http.ResponseWriter, _ *http.Request) {
		var boot unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, wire.ClockReply{BootNs: boot.Nano(), WallNs: time.Now().Add(5 * time.Second).UnixNano()})
	})
	return mux
}

//attack:local another user who reads a key
func TestKeysFileModesKeepSecrets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	if _, err := fleet.Init(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Issue(dir, "car", "10.0.0.1:7443", fleet.IssueOptions{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{".": 0o700, "controller.key": 0o600, "nodes/car": 0o700,
		"nodes/car/node.key": 0o600, "nodes/car/authorized.json": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), want)
		}
	}
}
