//go:build guest

//guest:kernel 6.12

package tcp

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/testnet/hwsim"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// Our vegas and westwood stand in for the kernel's own: on the same losses
// their windows go the same way. What hangs on measured time may differ by
// little; what a rule says must not.
func TestGuestProgramsFollowTheKernelsModules(t *testing.T) {
	hwsim.NeedGuest(t)
	hwsim.Modprobe(t, "tun")
	if err := os.MkdirAll("/dev/net", 0o755); err != nil {
		t.Fatal(err)
	}
	// There is no udev; 10, 200 is the kernel's number for it (devices.txt).
	if err := unix.Mknod("/dev/net/tun", unix.S_IFCHR|0o600, int(unix.Mkdev(10, 200))); err != nil && !errors.Is(err, unix.EEXIST) {
		t.Fatal(err)
	}
	for _, program := range []string{tcpcc.Vegas, tcpcc.Westwood} {
		t.Run(program, func(t *testing.T) {
			hwsim.Modprobe(t, "tcp_"+program)
			// Other work on the machine makes the emulator stand still, which both
			// take for a queue: one undisturbed pair of four must agree.
			var faults []string
			for range 4 {
				if faults = compare(t, program); len(faults) == 0 {
					return
				}
			}
			t.Error(faults)
		})
	}
}

// compare runs the kernel's module and ours over the same path, and says where
// they part.
func compare(t *testing.T, program string) (faults []string) {
	t.Helper()
	run := func(congestion string) course {
		// Slow, so that the emulator's milliseconds count for little, and late
		// enough that slow start's queue has gone.
		x := bottleneck(congestion, 850, losing(700))
		x.path.RateBps, x.path.Delay = bottleneckBps/4, 2*bottleneckWay
		x.receiver = map[string]string{"tcp_rmem": "4096 120000 120000"} // some hundred segments in flight at most
		x.sack = true                                                    // the stack's proportional rate reduction serves both
		return summary(t, x.run(t))
	}
	a, b := run(program), run(register(t, program).Name)
	t.Logf("the kernel's %+v, ours %+v", a, b)
	scaled := b.ssthresh
	if program == tcpcc.Westwood {
		// Bandwidth by round trip: what the path really carried is taken out.
		scaled = uint32(float64(b.ssthresh)*a.rate/b.rate + 0.5)
	}
	for _, c := range []struct {
		what         string
		theirs, ours uint32
	}{{"cwnd before the loss", a.before, b.before}, {"ssthresh after it", a.ssthresh, scaled}, {"timeouts", a.timeouts, b.timeouts}} {
		if !alike(c.theirs, c.ours) {
			faults = append(faults, fmt.Sprintf("%s: %d with the kernel's module, %d with ours", c.what, c.theirs, c.ours))
		}
	}
	return faults
}

// course is what a connection's window did at its loss.
type course struct {
	before, ssthresh, after, timeouts uint32
	rate                              float64 // segments a second before the loss
}

func summary(t *testing.T, tr trace) course {
	t.Helper()
	entry := tr.into(t, stateRecovery, 0)
	open := tr.into(t, stateOpen, entry)
	from, to := tr.points[entry/2], tr.points[entry-1]
	return course{before: to.cwnd, ssthresh: tr.points[open].ssthresh, after: tr.points[open].cwnd, timeouts: tr.timeouts(),
		rate: float64(to.ack-from.ack) / to.at.Sub(from.at).Seconds()}
}

// alike allows a fifth and two segments: in the guest a round trip of 50 ms is
// measured with several milliseconds of the emulator's.
func alike(a, b uint32) bool {
	return max(a, b)-min(a, b) <= max(a, b)/5+2
}
