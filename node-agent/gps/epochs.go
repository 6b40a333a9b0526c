package gps

import (
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// epochs reports when gpsd has said all that it will say of one epoch, that is,
// one time of the receiver.
//
// gpsd reports an epoch once or several times as its sentences come in. When
// GGA comes before RMC, the first report has a speed that gpsd worked out from
// two positions, which is off by metres per second and more; the receiver's own
// speed is only in a later report (seen with gpsd 3.22). How many there are
// changes when gpsd learns again which sentence ends an epoch. So an epoch is told when it has as many reports as
// epochs usually had, and nothing more of it has come for a while or the next
// has begun. One that does not get there is left out.
type epochs struct {
	utc      string // the present epoch; "" when there is none
	firstNs  int64  // boot time of its first report
	newestNs int64  // and of its newest
	reports  int
	needed   int
	late     bool      // it was held up on its way
	half     bool      // its begin may have been missed
	shown    bool      // it was told, and the client has it
	fix      *wire.GPS // as the newest report has it
	counts   []int     // reports of the last epochs
}

const (
	keptEpochs = 8
	maxReports = 100 // a receiver that hangs repeats its time for ever

	// quiet is how long nothing more must have come: more than a sentence of
	// 82 characters (NMEA 0183) takes at 9600 baud, which is 85 ms.
	quiet = 150 * time.Millisecond
)

// begin ends the present epoch and starts the next with its first report.
func (e *epochs) begin(utc string, arrivedNs int64, late bool) {
	if e.utc != "" && !e.half {
		if len(e.counts) >= keptEpochs {
			e.counts = append(e.counts[:0], e.counts[1:]...)
		}
		e.counts = append(e.counts, e.reports)
	}
	half := e.utc == ""
	*e = epochs{utc: utc, firstNs: arrivedNs, reports: 1, late: late, half: half, counts: e.counts}
	e.needed = e.usual()
}

// cut ends the present epoch without counting it.
func (e *epochs) cut() { e.utc = "" }

// usual is the least number of reports that more than a third of the last
// epochs had: receivers may send some sentences in every other epoch only,
// and a few lost sentences must not lower it. Before the first whole epoch
// has ended it is out of reach.
func (e *epochs) usual() int {
	usual := maxReports + 1
	for _, n := range e.counts {
		same := 0
		for _, m := range e.counts {
			if m == n {
				same++
			}
		}
		if 3*same > len(e.counts) {
			usual = min(usual, n)
		}
	}
	return usual
}

// told says that the present epoch can be shown now. Ended says that the next
// one has begun.
func (e *epochs) told(nowNs int64, ended bool) bool {
	if e.utc == "" || e.shown || e.late || e.reports < e.needed {
		return false
	}
	return ended || nowNs-e.newestNs >= quiet.Nanoseconds()
}
