//go:build e2e

package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func (f field) cookie(t *testing.T) uint64 {
	t.Helper()
	var cookie uint64
	f.ns.Do(t, func() (err error) {
		cookie, err = tcp.Cookie()
		return err
	})
	return cookie
}

// programs lists what is registered and attached for the field's namespace:
// congestion controls by their names, timers and tracepoints by the namespace
// that they were loaded for. Others' tests may run beside this one.
func (f field) programs(t *testing.T) string {
	t.Helper()
	cookie := f.cookie(t)
	suffix := "_" + strconv.FormatUint(cookie, 36)
	names, err := netstack.ReadSysctl("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	var out string
	for _, name := range strings.Fields(names) {
		if strings.HasSuffix(name, suffix) {
			out += "congestion control " + name + " is registered\n"
		}
	}
	attached, err := attachedTo(cookie)
	// A link that another test attaches just then has a number, and cannot be opened yet.
	for until := time.Now().Add(10 * time.Second); errors.Is(err, unix.EAGAIN) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
		attached, err = attachedTo(cookie)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out + attached
}

// attachedTo lists the timers and tracepoints of one namespace.
func attachedTo(cookie uint64) (string, error) {
	var out string
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil {
			continue
		}
		if p, err := ebpf.NewProgramFromID(info.Program); err == nil {
			if what, of := attachedFor(p); of == cookie {
				out += what + " is attached\n"
			}
			_ = p.Close()
		}
	}
	return out, it.Err()
}

// withoutPrograms takes programs' names out of a list that is one for the whole
// kernel, and shows other agents' too; programs lists the field's own.
func withoutPrograms(snapshot string) string {
	lines := strings.SplitAfter(snapshot, "\n")
	for i, line := range lines {
		if head, names, ok := strings.Cut(line, "tcp_allowed_congestion_control = "); ok {
			kernels := slices.DeleteFunc(strings.Fields(names), func(name string) bool {
				_, is := tcpcc.ProgramOf(name)
				return is
			})
			lines[i] = head + "tcp_allowed_congestion_control = " + strings.Join(kernels, " ") + "\n"
		}
	}
	return strings.Join(lines, "")
}

// attachedFor tells the programs of rto.bpf.c and events.bpf.c, and the
// namespace that one is for; 0 for another program.
func attachedFor(p *ebpf.Program) (what string, cookie uint64) {
	info, err := p.Info()
	if err != nil {
		return "", 0
	}
	what = map[string]string{"hold": "a timer", "retransmitted": "a trace of retransmissions",
		"state_set": "a trace of states"}[info.Name]
	if what == "" {
		return "", 0
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue
		}
		var value []byte
		if m.Type() == ebpf.Array {
			value, _ = m.LookupBytes(uint32(0))
		}
		_ = m.Close()
		// namespace_cookie is the first of the constants.
		if len(value) >= 8 {
			return what, binary.NativeEndian.Uint64(value)
		}
	}
	return "", 0
}

// mapsInKernel are the kernel's BPF maps, each open for its turn.
func mapsInKernel(t *testing.T) iter.Seq2[ebpf.MapID, *ebpf.Map] {
	t.Helper()
	return func(yield func(ebpf.MapID, *ebpf.Map) bool) {
		for id, more := ebpf.MapID(0), true; more; {
			next, err := ebpf.MapGetNextID(id)
			if errors.Is(err, os.ErrNotExist) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			id = next
			m, err := ebpf.NewMapFromID(id)
			if err != nil {
				continue // gone since
			}
			more = yield(id, m)
			_ = m.Close()
		}
	}
}

// kept lists the structures in the kernel that bear the name, registered or not.
func kept(t *testing.T, name string) (out []ebpf.MapID) {
	t.Helper()
	for id, m := range mapsInKernel(t) {
		if m.Type() == ebpf.StructOpsMap {
			if value, err := m.LookupBytes(uint32(0)); err == nil && bytes.Contains(value, append([]byte(name), 0)) {
				out = append(out, id)
			}
		}
	}
	return out
}

// awaitGone waits for the kernel, which frees maps some time after their last user.
func awaitGone(t *testing.T, name string) {
	t.Helper()
	testnet.Await(t, time.Minute, name+" has left the kernel", func() bool { return len(kept(t, name)) == 0 })
}

// variantChanges is what a trial of a variant with a fixed RTO asks for.
func (f field) variantChanges(t *testing.T, program string) (name string, changes []change.Change) {
	t.Helper()
	name, err := tcpcc.KernelName(program, f.cookie(t))
	if err != nil {
		t.Fatal(err)
	}
	return name, []change.Change{
		sysctl("net.ipv4.tcp_retries2", "255"),
		change.BPFCongestion{Program: program},
		change.HeldRTO{Peers: netip.MustParsePrefix("10.77.0.0/24")},
		change.TCPEvents{Flows: []change.TracedFlow{{Port: 5000, ClientPort: 20000, Streams: 6}}},
		sysctl("net.ipv4.tcp_congestion_control", name),
	}
}

// Whatever ends a host process, its programs end with it; what else was changed
// the next life puts back.
func TestE2EProgramsGoWithTheirProcess(t *testing.T) {
	f, other := newField(t)
	before := f.snapshot(t)
	name, changes := f.variantChanges(t, tcpcc.NewReno)
	otherName, otherChanges := other.variantChanges(t, tcpcc.NewReno)
	oc, ocmd := other.start(t, true)
	apply(t, oc, ScopeTrial, otherChanges) // a second agent of the same machine, with the same variant

	c, cmd := f.start(t, true)
	apply(t, c, ScopeTrial, changes)
	for _, want := range []string{"congestion control " + name + " is registered", "a timer is attached",
		"a trace of retransmissions is attached", "a trace of states is attached", "tcp_congestion_control = " + name} {
		if s := f.snapshot(t); !strings.Contains(s, want) {
			t.Fatalf("in force there is no %q in\n%s", want, s)
		}
	}
	apply(t, c, ScopeTrial, changes) // again, as after a lost answer
	events, err := c.TCPEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close() // what reads must not keep what is read in the kernel
	restoreAll(t, c)
	mustEqual(t, "after a restore", before, f.snapshot(t))
	awaitGone(t, name)
	if _, err := c.TCPEvents(t.Context()); err == nil || !strings.Contains(err.Error(), "no connection is followed") {
		t.Errorf("events after the restore: %v", err)
	}

	apply(t, c, ScopeTrial, changes)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	if s := f.programs(t); s != "" {
		t.Errorf("after SIGKILL, and before anybody put anything back:\n%s", s)
	}
	c, cmd = f.start(t, true)
	mustEqual(t, "after SIGKILL and another start", before, f.snapshot(t))
	awaitGone(t, name)

	apply(t, c, ScopeTrial, changes)
	terminate(t, cmd)
	mustEqual(t, "after SIGTERM", before, f.snapshot(t))
	awaitGone(t, name)
	if s := other.snapshot(t); !strings.Contains(s, otherName) || !strings.Contains(s, "a timer is attached") ||
		!strings.Contains(s, "a trace of states is attached") {
		t.Errorf("the other agent has lost its own:\n%s", s)
	}
	restoreAll(t, oc)
	terminate(t, ocmd)
	awaitGone(t, otherName)
}

// An agent whose namespace has another agent's variant is refused, and changes nothing.
func TestE2EAVariantThatIsThereAlready(t *testing.T) {
	f, _ := newField(t)
	name, changes := f.variantChanges(t, tcpcc.Tahoe)
	held, err := tcp.Register(tcpcc.Tahoe, name)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	c, cmd := f.start(t, true)
	before := f.snapshot(t)
	_, err = c.Apply(t.Context(), ScopeTrial, changes)
	var refused *change.Refused
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, name) || refused.Cure == "" {
		t.Errorf("a name that is taken: %v", err)
	}
	mustEqual(t, "after the refusal", before, f.snapshot(t))
	terminate(t, cmd)
}

// The status tells each variant and knob.
func TestE2EAbilitiesAreTold(t *testing.T) {
	f, _ := newField(t)
	c, cmd := f.start(t, true)
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, feature := range []string{"variant reno", "variant reno, classic", "variant tahoe", "variant newreno",
		"variant fack", "variant vegas", "variant westwood", "fixed_rto", "variant reference"} {
		at := slices.IndexFunc(st.TCP, func(a wire.Ability) bool { return a.Feature == feature })
		if at < 0 {
			t.Errorf("nothing is reported of %s", feature)
			continue
		}
		if a := st.TCP[at]; a.How == "none" && (a.Reason == "" || a.Needs == "") {
			t.Errorf("why there is no %s: %+v", feature, a)
		}
	}
	terminate(t, cmd)
}
