package virtual

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// job is what Boot is to do, on the kernel's command line: a file would be left
// over when the launcher is killed.
type job struct {
	Command  []string `json:"c"`           // the program and its arguments
	Writable string   `json:"w"`           // the folder that it may write to
	Readable []string `json:"r,omitempty"` // folders that it must see where folders of its own hide them
}

// mostJob leaves room on the kernel's command line, which has 4096 bytes.
const mostJob = 3000

func (j job) encode() (string, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return "", fmt.Errorf("encode the kernel's job: %w", err)
	}
	out := base64.RawURLEncoding.EncodeToString(text)
	if len(out) > mostJob {
		return "", fmt.Errorf("the paths of this rehearsal are too long for the kernel's command line (%d bytes of "+
			"%d); use shorter folders", len(out), mostJob)
	}
	return out, nil
}

func decodeJob(text string) (j job, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &j)
	}
	if err != nil {
		return j, fmt.Errorf("decode the kernel's job: %w", err)
	}
	return j, nil
}
