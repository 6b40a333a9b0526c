package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
)

// ownFolder is where, in the folder of runs, the server keeps what it knows of the runs that
// it began, each in a folder of the run's name.
const ownFolder = ".serve"

// Files in a run's folder there.
const (
	recordFile   = "run.json"
	campaignFile = "campaign.yaml" // as it was chosen
	outputFile   = "output"        // of the process that drives it, or did last
	shareFolder  = "export"

	movementFolder = "movement" // beside the campaign, which names files of it
)

// record is what the server knows of a run that it began, besides its archive.
type record struct {
	Campaign string    `json:"campaign"` // its name
	Scale    string    `json:"scale"`
	Place    string    `json:"place"`
	Trials   int       `json:"trials"`
	Begun    time.Time `json:"begun"`
	Ended    bool      `json:"ended,omitempty"` // by a person, for good
	Said     string    `json:"said,omitempty"`  // what went wrong when it was begun, paused or ended
	// RestoreDue: its nodes are not put back yet, or not all, or what one recorded last is still on it.
	RestoreDue bool     `json:"restore_due,omitempty"`
	Process    *Process `json:"process,omitempty"` // that drives it, unless it has ended by itself
	// Told is the last process that was interrupted: a second time would kill it.
	Told *Process `json:"told,omitempty"`
}

// Why a run's nodes may go on, and what to do, by what the app's buttons are called.
const (
	restoreDue = "its nodes are not put back yet: put the nodes back"
	byItself   = "its process ended by itself, and the nodes may go on: put the nodes back, or go on"
	outOfReach = "%s is out of reach: it goes on by itself. Go near, and put the nodes back."
	// of which the end of a window under way may be lost with the node
	recordedLast = "what %s recorded last is still on it: put the nodes back"
)

// own is the folder of what is known of a run.
func own(runs, name string) string { return filepath.Join(runs, ownFolder, name) }

// readRecord reads what is known of a run; nil: it was not begun here.
func readRecord(runs, name string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(own(runs, name), recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of run %s: %w", name, err)
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read what is known of run %s: %w", name, err)
	}
	return r, nil
}

func (r record) write(runs, name string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep what is known of run %s: %w", name, err)
	}
	if err := os.MkdirAll(own(runs, name), 0o755); err != nil {
		return fmt.Errorf("keep what is known of run %s: %w", name, err)
	}
	return keys.WriteFile(filepath.Join(own(runs, name), recordFile), append(data, '\n'), 0o644)
}

// saidMost is how many characters of an error are told.
const saidMost = 2000

// outputTail is how much of a process's output is looked at.
const outputTail = 64 << 10

// How the program's own errors begin, and what it says when it was interrupted.
const (
	errorPrefix     = "fieldmesh: "
	interruptedText = "interrupted; "
)

// failure is why the process ended that drove a run last, by its own words; "" if it was
// interrupted, or nobody waits for one and it did not say.
func (r record) failure(runs, name string) (string, error) {
	silent := ""
	if r.Process != nil {
		silent = byItself
	}
	f, err := os.Open(filepath.Join(own(runs, name), outputFile))
	if errors.Is(err, fs.ErrNotExist) {
		return silent, nil
	}
	if err != nil {
		return "", fmt.Errorf("read what the process of run %s said: %w", name, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > outputTail {
		if _, err := f.Seek(-outputTail, io.SeekEnd); err != nil {
			return "", fmt.Errorf("read what the process of run %s said: %w", name, err)
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, outputTail))
	if err != nil {
		return "", fmt.Errorf("read what the process of run %s said: %w", name, err)
	}
	text := string(bytes.ToValidUTF8(data, []byte("�")))
	at := strings.LastIndex("\n"+text, "\n"+errorPrefix)
	if strings.Contains("\n"+text, "\n"+errorPrefix+interruptedText) {
		return "", nil
	}
	if at < 0 {
		return silent, nil
	}
	return shortened(strings.TrimSpace(text[at+len(errorPrefix):]), saidMost), nil
}

// shortened is a text of at most so many characters.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
