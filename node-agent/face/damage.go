package face

import (
	"log/slog"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// damaged returns what reports records that the spool has lost: to the log, and by a record of the attempt before whose
// records they were.
func damaged(clk clock.Clock, log *slog.Logger) func(spool.Damage) (wire.Header, wire.Body) {
	return func(d spool.Damage) (wire.Header, wire.Body) {
		log.Error("records are lost", "run", d.Next.Run, "trial", d.Next.Trial, "attempt", d.Next.Attempt,
			"damage", d.String())
		h := wire.Header{Run: d.Next.Run, TBootNs: clk.BootNs(), Trial: d.Next.Trial, Attempt: d.Next.Attempt}
		return h, &wire.Event{Level: "error", Text: d.String()}
	}
}
