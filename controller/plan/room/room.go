// Package room bounds a run's archive, so that it can be read again within bounded memory.
package room

import (
	"bytes"
	"fmt"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Whoever writes an archive keeps to these.
const (
	// FilesMost bounds the files and folders that are the record of a run.
	FilesMost = 1_000_000
	// AttemptsMost bounds the attempts at all trials.
	AttemptsMost = 90_000
	// filesPlanned leaves a tenth for records that come after their attempt was sealed.
	filesPlanned = FilesMost / 10 * 9
	// decodedMost bounds the bytes that JSON becomes when it is decoded.
	decodedMost = 96 << 20
)

// FilesOfAttempt is the most files and folders that an attempt at a trial comes to.
func FilesOfAttempt(t wire.Trial) int {
	nodes := len(t.Nodes())
	n := 1 + 3                // its folder; plan, verdict, manifest
	n += 1 + nodes + 1        // records, the emulated field's too
	n += 1 + nodes            // provenance
	n += 1 + 2*len(t.Traffic) // what both ends of iperf3 print
	if t.Capture != nil {
		n += 1 + nodes
	}
	return n
}

// Attempts is how many attempts an archive has room for, if each trial has as many as any
// other.
func Attempts(trials []wire.Trial) int {
	files := 0
	for _, t := range trials {
		files += FilesOfAttempt(t)
	}
	return min(AttemptsMost, filesPlanned*len(trials)/max(files, 1))
}

// FitsMemory refuses JSON that would fill the memory: an object of three bytes becomes a
// structure of hundreds.
func FitsMemory(text []byte) error {
	if Weight(text) > decodedMost {
		return fmt.Errorf("it would take more than %d MiB of memory, as nothing in a run does", decodedMost>>20)
	}
	return nil
}

// Weight is how many bytes of memory JSON takes at most when it is decoded.
func Weight(text []byte) int {
	const object, value = 256, 16 // bytes: of the structures in lists; of a text or number in one
	return len(text) + object*bytes.Count(text, []byte("{")) + value*bytes.Count(text, []byte(","))
}
